// Printing: all details are open, the colours are light, and the page is as wide as the paper. Tables
// get the event `printing`, and charts the event `fit`.

import { repaint } from "./theme.js";

/** Prepares the page whenever it is about to be printed, and restores it afterwards. */
export function followPrinting() {
  addEventListener("beforeprint", () => switchPrinting(true));
  addEventListener("afterprint", () => switchPrinting(false));
}

function switchPrinting(isPrinting) {
  document.documentElement.toggleAttribute("data-printing", isPrinting);
  for (const details of document.querySelectorAll("main details")) unfold(details, isPrinting);
  send(".data-table", new CustomEvent("printing", { detail: isPrinting }));
  send("[data-fitted]", new Event("fit"));
  repaint();
}

function unfold(details, isPrinting) {
  if (isPrinting && !details.open) {
    details.open = true;
    details.dataset.unfolded = "";
    details.dispatchEvent(new Event("toggle")); // the browser sends its own event too late
  } else if (!isPrinting && "unfolded" in details.dataset) {
    details.open = false;
    delete details.dataset.unfolded;
  }
}

function send(selector, event) {
  for (const element of document.querySelectorAll(selector)) element.dispatchEvent(event);
}
