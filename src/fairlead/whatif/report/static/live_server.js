// Communication with the server of a dashboard: server-sent events with the state, and POST requests.

const RETRY_MS = 3000;
const NO_SESSION = 401;

/**
 * Calls `onState({ clock, page })` for every state. Calls `onConnection(problem)` when the connection is
 * lost, and `onConnection("")` when it is restored.
 */
export function followState(onState, onConnection) {
  const source = new EventSource("/live");
  source.addEventListener("open", () => onConnection(""));
  source.addEventListener("message", ({ data }) => onState(JSON.parse(data)));
  source.addEventListener("error", async () => {
    onConnection("no connection");
    // The browser connects again by itself, unless the server has refused it.
    if (source.readyState !== EventSource.CLOSED) return;
    if (await isLoggedOut()) onConnection("this session has ended; open a new link");
    else setTimeout(() => followState(onState, onConnection), RETRY_MS);
  });
}

async function isLoggedOut() {
  try {
    return (await fetch("/", { method: "HEAD" })).status === NO_SESSION;
  } catch {
    return false;
  }
}

/** The server's answer to a POST. If the server refuses the request, throws an Error with the reason. */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const isJson = (reply.headers.get("Content-Type") ?? "").startsWith("application/json");
  const answer = isJson ? await reply.json() : { error: (await reply.text()).trim() };
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}
