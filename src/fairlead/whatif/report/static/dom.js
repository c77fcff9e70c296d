// Functions that build elements. Text is inserted only as text nodes and attributes, never as markup.

/** Creates an element with `children`. `attributes` may contain `class` and listeners (`on…`). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) assign(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function assign(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "class") element.className = value;
  else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else element.setAttribute(name, value === true ? "" : value);
}

/** A part of the page with a title, to which the navigation can link. */
export function section(id, title, lead, ...children) {
  const heading = h("h2", { id: `${id}-title` }, title);
  const head = h(
    "div",
    { class: "section-head" },
    heading,
    lead && h("p", { class: "lead" }, lead),
  );
  return h("section", { id, "aria-labelledby": `${id}-title` }, head, ...children);
}

/** The words of a text, so that lines break between words, never inside a flag like `--add-nodes`. */
export function unbroken(text) {
  return text.split(" ").flatMap((word) => [h("span", { class: "word" }, word), " "]);
}

/** Marks an element that scrolls sideways while some of its content is hidden at its left or right. */
export function scrollingSideways(element) {
  const update = () => {
    const { scrollLeft, scrollWidth, clientWidth } = element;
    element.toggleAttribute("data-more-before", scrollLeft > 1);
    element.toggleAttribute("data-more-after", scrollLeft + clientWidth < scrollWidth - 1);
  };
  element.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(element);
  return element;
}

/** The sentence that is shown if there is nothing else to show. */
export function nothing(text) {
  return h("p", { class: "nothing" }, text);
}

/** A group of buttons, of which exactly one is pressed. */
export function choice(label, options, chosen, onchoose) {
  const buttons = options.map(([value, text, title]) => {
    const pressed = String(value === chosen);
    return h(
      "button",
      { type: "button", "data-value": value, "aria-pressed": pressed, title },
      text,
    );
  });
  const choose = (value) => {
    for (const button of buttons)
      button.setAttribute("aria-pressed", button.dataset.value === value);
    onchoose(value);
  };
  for (const button of buttons)
    button.addEventListener("click", () => choose(button.dataset.value));
  return scrollingSideways(h("div", { class: "choice", role: "group", "aria-label": label }, ...buttons));
}

/** A drop-down list, which replaces the buttons of `choice` if there are many options. */
export function dropDown(label, options, chosen, onchoose) {
  const select = h("select", { "aria-label": label });
  for (const [value, text] of options) select.append(h("option", { value }, text));
  select.value = chosen;
  select.addEventListener("change", () => onchoose(select.value));
  return select;
}

/** A text field that calls `oninput` with the typed text, in lower case. */
export function searchField(label, oninput) {
  const field = h("input", { type: "search", placeholder: label, "aria-label": label });
  field.addEventListener("input", () => oninput(field.value.trim().toLowerCase()));
  return field;
}

/** A horizontal bar as long as `share`, with a mark at `before`. Both are ratios or null. */
export function bar(share, before = null) {
  const fill = h("span", { class: share > 1 ? "fill over" : "fill" });
  fill.style.width = `${Math.min(Math.max(share ?? 0, 0), 1) * 100}%`;
  const track = h("span", { class: "bar", "aria-hidden": "true" }, fill);
  if (before !== null) {
    const mark = h("span", { class: "before" });
    mark.style.left = `${Math.min(before, 1) * 100}%`;
    track.append(mark);
  }
  return track;
}

/**
 * Calls `draw(width)` when the element gets a width, and whenever the width changes. On the event
 * `fit`, it calls `draw` immediately, because printing does not wait.
 */
export function onWidth(element, draw) {
  let drawn = 0;
  new ResizeObserver((entries) => {
    const width = Math.floor(entries[0].contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    requestAnimationFrame(() => draw(width)); // drawing inside the callback would resize again
  }).observe(element);
  element.dataset.fitted = "";
  element.addEventListener("fit", () => {
    const { paddingLeft, paddingRight } = getComputedStyle(element);
    drawn = Math.floor(element.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
    if (drawn > 0) draw(drawn);
  });
}
