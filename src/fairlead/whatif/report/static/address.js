// The page's address as a permalink: `#node=worker-1&t=350` leads back to what is shown.

/** What the address says, as [name, value] pairs. */
function addressed() {
  const parts = window.location.hash.slice(1).split("&");
  return parts
    .map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)])
    .filter(([name]) => name)
    .map(([name, value]) => [name, decoded(value)]);
}

function decoded(value) {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Makes the page's address lead to what is shown; null takes `name` out of it. */
export function setAddress(name, value) {
  const others = addressed().filter(([other]) => other !== name);
  if (value === null && others.length === addressed().length) return;
  const parts = value === null ? others : [...others, [name, value]];
  const hash = parts.map(([key, text]) => `${key}=${encodeURIComponent(text)}`).join("&");
  try {
    window.history.replaceState(null, "", hash ? `#${hash}` : window.location.pathname + window.location.search);
  } catch {
    // a page inside a frame may have no address of its own
  }
}

/**
 * Calls `show` with the value of `name` in the address, and with all that the address says, by name:
 * now, whenever the address is changed, and when a link to the present address is pressed again.
 * It ends when `element`, if one is given, is no longer in the page.
 */
export function onAddress(name, show, element = document.body) {
  const end = new AbortController();
  const look = () => {
    if (!element.isConnected) return end.abort();
    const all = Object.fromEntries(addressed());
    if (name in all) show(all[name], all);
  };
  const press = ({ target }) => {
    const link = target.closest?.("a[href^='#']");
    if (link && link.hash === window.location.hash) look();
  };
  window.addEventListener("hashchange", look, end);
  document.addEventListener("click", press, end);
  requestAnimationFrame(look);
}
