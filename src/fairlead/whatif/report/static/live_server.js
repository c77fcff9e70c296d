// The server behind a dashboard: the state as server-sent events, and requests that change or ask.

/** Calls `onState({ clock, page })` for every state, and `onConnection(isOpen)` when that changes. */
export function followState(onState, onConnection) {
  const source = new EventSource("/live");
  source.addEventListener("open", () => onConnection(true));
  source.addEventListener("error", () => onConnection(false));
  source.addEventListener("message", ({ data }) => onState(JSON.parse(data)));
}

/** The server's answer to a POST; throws an Error with its reason for a refusal. */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const isJson = (reply.headers.get("Content-Type") ?? "").startsWith("application/json");
  const answer = isJson ? await reply.json() : { error: (await reply.text()).trim() };
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}
