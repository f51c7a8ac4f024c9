// Elements from values, and the change of what is shown to what is to be shown, without disturbing focus or scrolling.
// Text only ever enters as text: names in records may come from strangers.

const SVG = "http://www.w3.org/2000/svg";

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export const h = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => made(document.createElementNS(SVG, tag), attributes, children);

// Make the children of `shown` like those of `wanted`; elements with the same data-key stay the same elements. What is
// inside an element with data-own belongs to somebody else.
export function become(shown, wanted) {
  const keyed = new Map();
  for (const each of shown.children) if (each.dataset?.key) keyed.set(each.dataset.key, each);
  let at = shown.firstChild;
  for (const fresh of [...wanted.childNodes]) {
    const key = fresh.dataset?.key;
    let found = key ? keyed.get(key) : at;
    if (key) keyed.delete(key);
    else if (found?.dataset?.key) found = null;
    if (!found || found.nodeName !== fresh.nodeName) {
      shown.insertBefore(fresh, at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else shown.insertBefore(found, at);
    if (fresh.nodeType === Node.TEXT_NODE) {
      if (found.data !== fresh.data) found.data = fresh.data;
      continue;
    }
    for (const { name } of [...found.attributes]) {
      if (!fresh.hasAttribute(name) && !name.startsWith("data-lit")) found.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (found.getAttribute(name) !== value) found.setAttribute(name, value);
    }
    if (fresh.dataset?.own === undefined) become(found, fresh);
    else found.given = fresh.given;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
