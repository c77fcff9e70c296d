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

/** Calls `show` with the value of `name` in the address, now and whenever the address is changed. */
export function onAddress(name, show) {
  const look = () => {
    const found = addressed().find(([other]) => other === name);
    if (found) show(found[1]);
  };
  window.addEventListener("hashchange", look);
  requestAnimationFrame(look);
}
