// The controls of a dashboard: the clock, changes of nodes, what-ifs, and explanations of pods.

import { h, section } from "./dom.js";
import { post } from "./live_server.js";
import { nodeMarks } from "./node_detail.js";

const ADVANCES = ["10s", "1m", "5m", "1h"];
const SPEEDS = [1, 10, 60, 600];

/** A button that calls `act`; `said` shows the returned message, or why `act` failed. */
function actionButton(text, said, act) {
  const button = h("button", { type: "button", class: "quiet" }, text);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true"); // a disabled button would lose the focus
    await say(said, "…", act);
    button.removeAttribute("aria-disabled");
  });
  return button;
}

async function say(said, meanwhile, act) {
  said.className = "note";
  said.textContent = meanwhile;
  try {
    said.textContent = (await act()) ?? "";
  } catch (cause) {
    said.className = "note failed";
    said.textContent = cause.message;
  }
}

function saying() {
  return h("span", { class: "note", role: "status", "aria-live": "polite" });
}

/**
 * The clock of the cluster, with controls if `hasControls`. `show(clock)` shows a new state of the
 * clock. `connect(problem)` shows a problem of the connection; "" means that there is none.
 */
export function clockControls(hasControls) {
  const said = saying();
  const now = h("output", { class: "clock-now" });
  const line = h("span", { class: "badge", role: "status" });
  const speed = h("span", { class: "note" });
  const steer = (body) => async () => (await post("/clock", body)).message;
  const pause = actionButton("Pause", said, () => steer({ paused: !state.paused })());
  const state = { paused: false, base: 0, since: 0, speed: 0, isConnected: true };
  const tick = () => {
    const passed = state.paused ? 0 : (performance.now() - state.since) * state.speed;
    now.textContent = new Date(state.base + passed).toISOString().replace(/\.\d+/, "");
  };
  setInterval(() => state.since && state.isConnected && tick(), 500);
  const buttons = h(
    "div",
    { class: "clock-buttons", role: "group", "aria-label": "Clock" },
    h(
      "span",
      {},
      h("span", { class: "note" }, "Advance"),
      ADVANCES.map((advance) => actionButton(advance, said, steer({ advance }))),
    ),
    h(
      "span",
      {},
      h("span", { class: "note" }, "Speed"),
      SPEEDS.map((value) => actionButton(`${value}×`, said, steer({ speed: value }))),
      pause,
    ),
    said,
  );
  const element = h(
    "div",
    { class: "card clock-card" },
    h("div", {}, h("span", { class: "tile-name" }, "Cluster time"), now, speed, line),
    hasControls ? buttons : null,
  );
  const show = ({ now: text, speed: value, paused }) => {
    Object.assign(state, { paused, base: Date.parse(text), since: performance.now(), speed: value });
    speed.textContent = hasControls ? (paused ? "paused" : `${value}×`) : "";
    pause.textContent = paused ? "Resume" : "Pause";
    tick();
  };
  const connect = (problem) => {
    line.textContent = problem;
    state.isConnected = problem === "";
  };
  return { element, show, connect };
}

/** The form for what-ifs, and the answers below it. */
export function askSection({ nodes }) {
  const said = saying();
  const field = h("input", {
    type: "text",
    class: "ask-field",
    "aria-label": "Change",
    placeholder: `--drain ${nodes.name[0] ?? "node-1"}`,
    autocomplete: "off",
    spellcheck: "false",
  });
  const button = h("button", { type: "submit", class: "quiet" }, "Ask");
  const form = h("form", { class: "toolbar" }, h("code", {}, "fairlead whatif"), field, button, said);
  const answers = h("div", { class: "ask-answers" });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    await say(said, "Simulating…", async () => {
      const change = field.value;
      answers.prepend(askAnswer(change, await post("/ask", { change })));
    });
    button.disabled = false;
  });
  const lead = "The question is about the current state. It is answered in a separate process, and the cluster does not change.";
  return section("ask", "What if?", lead, h("div", { class: "card" }, form, answers));
}

/** Puts options into the form, where the user can change them before asking. */
export function suggestChange(options) {
  const field = document.querySelector(".ask-field");
  field.value = options;
  field.scrollIntoView({ block: "center" });
  field.focus();
}

function askAnswer(change, { findings, report }) {
  return h(
    "div",
    { class: "ask-answer" },
    h("p", {}, h("code", {}, change), " ", h("a", { href: report, target: "_blank" }, "Report")),
    h("ul", { class: "findings" }, findings.map(({ severity, sentence }) => h("li", { class: severity }, sentence))),
  );
}

/** What the dashboard adds to a node's panel and to a pod's story. */
export function liveActions(hasControls) {
  return { nodeActions: hasControls ? nodeActions : () => null, explanation };
}

const saidAboutNode = new Map(); // kept, so that a message stays visible when the panel is drawn again

function nodeActions(name, states, node) {
  if (!saidAboutNode.has(name)) saidAboutNode.set(name, saying());
  const said = saidAboutNode.get(name);
  const marks = nodeMarks(states, node);
  const act = (action) => async () => (await post("/node", { node: name, action })).message;
  const buttons = [
    marks.includes("cordoned") ? ["Uncordon", "uncordon"] : ["Cordon", "cordon"],
    ["Drain", "drain"],
    marks.includes("out of service") ? ["Start", "start"] : ["Stop", "stop"],
  ];
  const group = { class: "node-actions", role: "group", "aria-label": `Change ${name}` };
  return h("div", group, buttons.map(([text, action]) => actionButton(text, said, act(action))), said);
}

function explanation(pod) {
  const text = h("pre", { class: "explanation", tabindex: "0", hidden: true });
  const said = saying();
  const button = actionButton("Explain", said, async () => {
    text.textContent = (await post("/explain", { pod })).text;
    text.hidden = false;
  });
  return h("div", {}, h("p", {}, button, " ", said), text);
}
