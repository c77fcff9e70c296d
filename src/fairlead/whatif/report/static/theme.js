// The colour scheme: light, dark, or the system setting. Code that paints on a canvas calls `onThemeChange`.

import { h } from "./dom.js";

const THEMES = ["system", "light", "dark"];
const STORED_AS = "fairlead-report-theme";

export function themeToggle() {
  const label = h("span");
  const button = h(
    "button",
    { type: "button", class: "quiet", id: "theme" },
    h("span", { class: "theme-word" }, "Theme: "),
    label,
  );
  const show = (theme) => {
    applyTheme(theme);
    label.textContent = theme;
    button.setAttribute("aria-label", `Theme: ${theme}`);
    button.onclick = () => {
      const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      remember(next);
      show(next);
    };
  };
  show(remembered());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  return button;
}

const repaints = [];

/** Calls `paint` when the colours change, as long as `within` is in the page. */
export function onThemeChange(paint, within = null) {
  repaints.push({ paint, within });
}

/** Removes the functions whose elements are no longer in the page. */
export function forgetDetachedRepaints() {
  const kept = repaints.filter(({ within }) => within === null || within.isConnected);
  repaints.splice(0, repaints.length, ...kept);
}

function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  repaint();
}

/** Calls all functions that were passed to `onThemeChange`. */
export function repaint() {
  for (const { paint } of repaints) paint();
}

// A browser may refuse storage to a file that it opened from disk; the choice is then not remembered.
function remembered() {
  try {
    const theme = localStorage.getItem(STORED_AS);
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}

function remember(theme) {
  try {
    localStorage.setItem(STORED_AS, theme);
  } catch {
    return;
  }
}
