// The fragment of the page's address, which links to the current view: `#node=worker-1&t=350`.

/** The parts of the fragment, as [name, value] pairs. */
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

/** Sets the part `name` of the fragment to `value`; null removes the part. */
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
 * Calls `show` with the value of `name` in the fragment, and with an object that has all parts of the
 * fragment: at the start, whenever the address changes, and when a link to the current address is
 * clicked. The calls stop when `element` is no longer in the page.
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
