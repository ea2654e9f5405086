// Elements from data. Text is only ever text: nothing that users wrote is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
// Control characters, and those that turn the direction of writing, are shown and not obeyed.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text) {
  return String(text).replace(INVISIBLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "width") node.style.width = value;
  else if (name === "class" || name.includes("-") || node.namespaceURI === SVG) node.setAttribute(name, value);
  else if (name in node && name !== "list" && name !== "role") node[name] = value;
  else node.setAttribute(name, value === true ? "" : value);
}

export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  return fill(node, children);
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return fill(node, children);
}

// Whoever has the focus inside keeps it: on the same link, or else on what is in the same place.
export function replace(node, ...children) {
  const focus = node.contains(document.activeElement) ? placeOf(document.activeElement, node) : null;
  node.replaceChildren();
  fill(node, children);
  if (focus) findPlace(focus, node)?.focus({ preventScroll: true });
  return node;
}

const FOCUSABLE = "a[href], button, input, select, textarea";
const placeOf = (element, node) => ({
  href: element.getAttribute("href"),
  index: [...node.querySelectorAll(FOCUSABLE)].indexOf(element),
});

function findPlace({ href, index }, node) {
  if (index < 0) return null;
  const all = [...node.querySelectorAll(FOCUSABLE)];
  return all.find((one) => href !== null && one.getAttribute("href") === href) ?? all[index];
}

// Draw a part again only if what it shows is another object; differences keep what did not change.
const drawn = new WeakMap();
export function once(node, value, draw) {
  if (drawn.get(node) === value) return;
  drawn.set(node, value);
  replace(node, draw(value));
}

// Keep one child per row, in the order of the rows; a child is drawn again only if its row is another one.
export function patch(container, rows, draw) {
  const known = new Map();
  for (const child of container.children) known.set(child.dataset.key, child);
  let next = container.firstElementChild;
  for (const row of rows) {
    let child = known.get(row.key);
    known.delete(row.key);
    if (child === undefined) {
      child = draw(row, null);
      child.dataset.key = row.key;
      drawn.set(child, row);
    } else if (drawn.get(child) !== row) {
      drawn.set(child, row);
      draw(row, child);
    }
    if (child === next) next = next.nextElementSibling;
    else container.insertBefore(child, next);
  }
  for (const child of known.values()) child.remove();
}

// A table that stays one for screen readers when a narrow screen lays it out as blocks.
export function table(caption, columns, attributes = {}) {
  const body = h("tbody", { role: "rowgroup" });
  const cells = columns.map(([text, kind]) => h("th", { scope: "col", role: "columnheader", class: kind ?? "" }, text));
  const node = h(
    "table",
    { role: "table", ...attributes },
    h("caption", { class: "hidden" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, cells)),
    body,
  );
  node.columns = columns;
  node.body = body;
  return node;
}

export function cells(row, columns, contents) {
  return replace(
    row,
    columns.map(([label, kind], index) =>
      h("td", { role: "cell", class: kind ?? "", "data-label": label }, contents[index]),
    ),
  );
}

export function tableRow(existing, columns, contents, attributes = {}) {
  const row = existing ?? h("tr", { role: "row", tabIndex: -1 });
  for (const name of ["data-href", "class"]) row.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes)) if (value) row.setAttribute(name, value);
  return cells(row, columns, contents);
}
