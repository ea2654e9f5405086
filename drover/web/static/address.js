// The address holds the view, the filter and the time: a link shows the other one what I see. Every address is relative,
// so that a proxy may show the page below any path.

export const HOME = "./";

export function read() {
  const query = Object.fromEntries(new URLSearchParams(location.search));
  return { ...query, view: query.view ?? "now" };
}

export function href(query) {
  const kept = Object.entries(query).filter(
    ([name, value]) =>
      value !== null &&
      value !== undefined &&
      value !== "" &&
      !(name === "view" && value === "now") &&
      !(name === "page" && String(value) === "1") &&
      !(name === "show" && value === "all"),
  );
  const text = new URLSearchParams(kept).toString();
  return text ? `?${text}` : HOME;
}

const listeners = [];
export const onChange = (listener) => listeners.push(listener);
const tell = () => listeners.forEach((listener) => listener(read()));

export function go(query, { quietly = false } = {}) {
  const address = href(query);
  if (new URL(address, location).href === new URL(location.pathname + location.search, location).href) return;
  if (quietly) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  tell();
}

addEventListener("popstate", tell);
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(`a[href^='?'], a[href='${HOME}']`);
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(Object.fromEntries(new URL(link.href).searchParams));
});
