// Who is connected to whom, drawn: senders on the left, transport sessions, receivers on the right.
import { svg, h } from "./dom.js";
import { amount, level } from "./words.js";

const ROW = 46, GAP = 8, HOST = 20, TOP = 26;

const cut = (text, width) => {
  const room = Math.max(4, Math.floor(width / 7));
  return text.length > room ? text.slice(0, room - 1) + "…" : text;
};

// Places of a column: y of each node, with a heading where another host begins.
function placed(nodes, grouped) {
  let y = TOP, host = null;
  const headings = [];
  for (const node of nodes) {
    if (grouped && node.host !== host) {
      host = node.host;
      headings.push({ y: y + 13, text: host || "unknown host" });
      y += HOST;
    }
    node.y = y;
    y += ROW + GAP;
  }
  return { nodes, headings, height: y };
}

const mean = (numbers) => (numbers.length ? numbers.reduce((sum, each) => sum + each, 0) / numbers.length : 0);

// Sessions beside their senders, receivers of a host beside their sessions: fewer crossings, and always the same order.
function ordered(data) {
  const senders = data.senders.map((each) => ({ ...each }));
  const at = new Map(senders.map((each, place) => [each.id, place]));
  const from = new Map(), to = new Map();
  for (const link of data.links) {
    if (link.side === "send") from.set(link.to, [...(from.get(link.to) || []), at.get(link.from) ?? 0]);
    else to.set(link.to, [...(to.get(link.to) || []), link.from]);
  }
  const sessions = data.sessions.map((each) => ({ ...each, key: mean(from.get(each.name) || []) }));
  sessions.sort((one, other) => one.key - other.key || one.name.localeCompare(other.name));
  const place = new Map(sessions.map((each, number) => [each.name, number]));
  const receivers = data.receivers.map((each) => ({ ...each, key: mean((to.get(each.id) || []).map((name) => place.get(name))) }));
  const hosts = new Map();
  for (const each of receivers) hosts.set(each.host, [...(hosts.get(each.host) || []), each.key]);
  receivers.sort((one, other) =>
    mean(hosts.get(one.host)) - mean(hosts.get(other.host)) || one.host.localeCompare(other.host) ||
    one.key - other.key || one.name.localeCompare(other.name) || one.pid - other.pid);
  return { senders, sessions, receivers };
}

function node(each, x, width, kind, title, sub, label) {
  const state = level(each.level);
  const mark = each.level === "ok" ? "" : state.mark + " ";
  return svg("a", {
    href: `/o/${each.id}`, class: `node ${kind}`, "data-key": `${kind} ${each.id}`, "data-node": each.name && kind === "session" ? each.name : each.id,
    "data-tone": state.tone, "aria-label": `${label}, ${state.word}`,
  },
  svg("title", {}, label),
  svg("rect", { class: "box", x, y: each.y, width, height: ROW, rx: 8 }),
  svg("rect", { class: "bar", x, y: each.y + 8, width: 3, height: ROW - 16, rx: 1.5 }),
  svg("text", { x: x + 14, y: each.y + 19 }, cut(mark + title, width - 22)),
  svg("text", { x: x + 14, y: each.y + 36, class: "sub" }, cut(sub, (width - 22) * 1.08)));
}

export function map(data, width) {
  if (!data.sessions.length) return h("p", { class: "empty" }, "No source and no receiver has told of itself yet.");
  const { senders, sessions, receivers } = ordered(data);
  const side = Math.min(230, width * 0.25), middle = Math.min(290, width * 0.31);
  const columns = [placed(senders, true), placed(sessions, false), placed(receivers, true)];
  const height = Math.max(...columns.map((each) => each.height));
  for (const column of columns) {
    const shift = Math.floor((height - column.height) / 2);
    for (const each of column.nodes) each.y += shift;
    for (const each of column.headings) each.y += shift;
  }
  const x = { send: 0, session: (width - middle) / 2, receive: width - side };
  const byId = { send: new Map(senders.map((each) => [each.id, each])), receive: new Map(receivers.map((each) => [each.id, each])) };
  const bySession = new Map(sessions.map((each) => [each.name, each]));
  const wires = [];
  for (const link of data.links) {
    const sending = link.side === "send";
    const one = sending ? byId.send.get(link.from) : bySession.get(link.from);
    const other = sending ? bySession.get(link.to) : byId.receive.get(link.to);
    if (!one || !other) continue;
    const [x1, x2] = sending ? [side, x.session] : [x.session + middle, x.receive];
    const [y1, y2] = [one.y + ROW / 2, other.y + ROW / 2], bend = (x2 - x1) / 2;
    wires.push(svg("path", {
      class: "wire", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "data-key": `${link.from} ${link.to}`,
      "data-ends": `${link.from} ${link.to}`, "data-tone": level(link.level).tone, "data-level": link.level,
      "stroke-width": Math.min(6, 1.2 + Math.log10(1 + link.rate)).toFixed(1),
    }));
  }
  const headings = [
    ["Senders", 0, "start"], ["Transport sessions and topics", x.session, "start"], ["Receivers", x.receive, "start"],
  ].map(([text, left, anchor]) => svg("text", { class: "title", x: left, y: 12, "text-anchor": anchor }, text));
  const hosts = [[columns[0], 0], [columns[2], x.receive]].flatMap(([column, left]) =>
    column.headings.map((each) => svg("text", { class: "sub", x: left + 2, y: each.y }, each.text)));
  const rated = (each) => `process ${each.pid}` + (each.rate ? ` · ${amount(each.rate)} msg/s` : "");
  return svg("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Who is connected to whom" },
    svg("g", {}, wires), headings, hosts,
    svg("g", {}, senders.map((each) => node(each, x.send, side, "sender", each.name, `process ${each.pid}`, `sender ${each.name} on ${each.host}`))),
    svg("g", {}, sessions.map((each) => {
      const topics = each.topics.join(", ") + (each.more_topics ? ` and ${each.more_topics} more` : "");
      const name = topics || each.name;
      const sub = topics ? each.name : each.transport;
      return node(each, x.session, middle, "session", name, each.watched ? sub : `${sub} (source not monitored)`, `${name}, ${each.name}, ${amount(each.rate)} messages a second`);
    })),
    svg("g", {}, receivers.map((each) => node(each, x.receive, side, "receiver", each.name, rated(each), `receiver ${each.name} on ${each.host}, ${rated(each)}`))));
}

// What hangs on a node stands out while the pointer or the focus is on it. One listener for the whole content.
export function lighting(root) {
  const light = (event) => {
    const found = event.target.closest?.(".map .node"), drawing = event.target.closest?.(".map");
    for (const each of root.querySelectorAll(".map")) if (each !== drawing || !found) each.removeAttribute("data-lit");
    if (!found || !drawing) return;
    const name = found.dataset.node, reached = new Set([name]);
    const wires = [...drawing.querySelectorAll(".wire")];
    const ends = (wire) => wire.dataset.ends.split(" ");
    for (const wire of wires) if (ends(wire).includes(name)) ends(wire).forEach((each) => reached.add(each));
    if (!found.classList.contains("session")) {
      const sessions = [...drawing.querySelectorAll(".session")].map((each) => each.dataset.node).filter((each) => reached.has(each));
      for (const wire of wires) if (sessions.some((each) => ends(wire).includes(each))) ends(wire).forEach((each) => reached.add(each));
    }
    for (const wire of wires) wire.classList.toggle("lit", ends(wire).every((each) => reached.has(each)));
    for (const each of drawing.querySelectorAll(".node")) each.classList.toggle("lit", reached.has(each.dataset.node));
    drawing.setAttribute("data-lit", "");
  };
  for (const name of ["pointerover", "focusin"]) root.addEventListener(name, light);
}
