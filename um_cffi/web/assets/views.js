// What each view looks like: functions from the sections of a view to elements.
import { h } from "./dom.js";
import { amount, clock, kind, lasting, level, many, MARKS } from "./words.js";
import { map } from "./map.js";
import { charts } from "./charts.js";

const card = (name, title, more, ...content) =>
  h("section", { class: "card", "data-key": name, "aria-label": title }, h("h2", {}, title, more), ...content);
const mark = (name) => h("span", { class: `tone-${level(name).tone}`, "aria-hidden": "true" }, level(name).mark);
const told = (name) => h("span", { class: `level tone-${level(name).tone}` }, level(name).mark, " ", level(name).word);
const since = (at, now) => `since ${clock(at)} (${lasting(now - at)})`;
const joined = (parts) => parts.filter(Boolean).join(" · ");

function verdict(data) {
  const { verdict: said, clock: at } = data, first = level(said.level);
  let title, more;
  if (said.level === "empty") {
    title = "No records yet";
    more = "Processes tell of themselves when monitoring is on: monitor_interval, or LBM_MONITOR_INTERVAL=1.";
  } else if (said.level === "ok") {
    title = said.receivers === 1 ? "The only receiver keeps up" : said.receivers ? `All ${said.receivers.toLocaleString("en")} receivers keep up` : "Nothing is wrong";
    more = `nobody has lost or delayed anything ${since(said.calm_since, at.now)}`;
  } else {
    title = said.parts.map((each) => `${each.who} ${each.says}`).join("; ");
    more = said.parts.map((each) => (said.parts.length > 1 ? level(each.level).word + " " : "") + since(each.since, at.now)).join(" · ");
  }
  return h("section", { class: "card verdict", "data-key": "verdict", "data-tone": first.tone, "aria-live": "polite" },
    h("span", { class: `mark tone-${first.tone}`, "aria-hidden": "true" }, said.level === "ok" ? "✓" : first.mark),
    h("div", {}, h("h1", {}, title), h("p", {}, more)));
}

function figures({ totals }) {
  const counted = [
    ["hosts", totals.hosts, "host"], ["processes", totals.processes, "process"], ["contexts", totals.contexts, "context"],
    ["sources", totals.sources, "source"], ["receivers", totals.receivers, "receiver"], ["event queues", totals.event_queues, "event_queue"],
  ].map(([name, value, of]) => h("a", { class: "figure", href: `/list?kind=${of}`, "data-key": name }, h("b", {}, value.toLocaleString("en")), h("span", {}, name)));
  const { messages, bytes, missed, naks } = totals.rates;
  const rates = [
    ["messages/s", amount(messages), ""], ["bytes/s", amount(bytes), ""],
    ["missed/s", amount(missed, 2), missed ? "tone-warn" : ""], ["NAKs/s", amount(naks, 2), naks ? "tone-warn" : ""],
  ].map(([name, value, tone]) => h("div", { class: "figure", "data-key": name }, h("b", { class: tone }, value), h("span", {}, name)));
  return h("section", { class: "card figures", "data-key": "figures", "aria-label": "In numbers" }, counted, rates);
}

function ranking(rows, now) {
  if (!rows.length) return h("p", { class: "empty" }, "Nobody is slow, and nobody misses anything.");
  return h("ol", { class: "rows" }, rows.map((each) => h("li", { "data-key": each.id },
    h("a", { href: `/o/${each.level === "silent" ? each.process_id : each.id}`, title: each.source },
      mark(each.level),
      h("span", {}, h("strong", {}, each.application), " on ", h("strong", {}, each.host || "unknown host"),
        h("div", { class: "sub" }, joined([`process ${each.pid}`, each.kind === "receiver" ? "" : kind(each.kind), each.topics.length ? "topic " + each.topics.join(", ") : each.source])),
        h("div", { class: `tone-${level(each.level).tone}` }, joined(each.reasons))),
      h("span", { class: "side" }, lasting(now - each.since), h("div", {}, `since ${clock(each.since)}`))))));
}

function events(list) {
  if (!list.length) return h("p", { class: "empty" }, "Nothing has happened.");
  return h("ol", { class: "rows events" }, list.map((each) => h("li", { "data-key": each.number },
    h("a", { href: `/o/${each.id}` },
      h("span", { class: `tone-${each.level}`, "aria-hidden": "true" }, MARKS[each.level]),
      h("span", { class: "sub" }, clock(each.at)),
      h("span", {}, each.text, h("div", { class: "sub" }, joined([each.who, each.topics.join(", "), each.times > 1 && `${each.times} times since ${clock(each.first)}`])))))));
}

export function overview(data, width) {
  if (!data.verdict) return [h("p", { class: "empty", "data-key": "wait" }, "One moment …")];
  const { left_out: rest } = data.topology, now = data.clock.now;
  const hidden = rest.sessions + rest.senders + rest.receivers;
  const narrow = width < 1080, room = narrow ? width - 34 : Math.floor((width - 16) * 2.1 / 3.1) - 36;
  return [
    verdict(data), figures(data),
    h("div", { class: "columns", "data-key": "columns" },
      h("div", { class: "stack" },
        card("map", "Who is connected to whom", hidden ? h("a", { href: "/list?kind=receiver" }, `not drawn: ${many(rest.sessions, "session")}, ${many(rest.receivers, "receiver")}`) : "",
          map(data.topology, Math.max(520, room))),
        card("hour", "The last hour of all receivers", "", charts(data.history))),
      h("div", { class: "stack" },
        card("slow", "Who is slow, the worst first", h("a", { href: "/list?kind=receiver&sort=level" }, "all receivers"), ranking(data.ranking, now)),
        card("events", "What has happened", h("a", { href: "/events" }, "all events"), h("div", { class: "scroll" }, events(data.events))))),
  ];
}

const KINDS = ["", "host", "process", "context", "source", "receiver", "event_queue", "topic", "wildcard"];

const address = (parts) => "/list?" + new URLSearchParams(Object.entries(parts).filter(([, value]) => value)).toString();

function table(rows, heads) {
  return h("div", { class: "wide" }, h("table", {},
    h("thead", {}, h("tr", {}, heads)),
    h("tbody", {}, rows.map((each) => h("tr", { "data-key": each.id },
      h("td", {}, h("a", { href: `/o/${each.id}` }, each.name)), h("td", {}, each.host), h("td", {}, kind(each.kind)),
      h("td", {}, each.about, each.topics?.length ? h("div", { class: "path" }, each.topics.join(", ")) : ""),
      h("td", { class: "number" }, each.rate ? amount(each.rate) : "–"),
      h("td", { class: "number" + (each.missed ? " tone-warn" : "") }, each.missed ? amount(each.missed, 2) : "–"),
      h("td", { class: "number" }, each.naks ? amount(each.naks, 2) : "–"),
      h("td", {}, told(each.level)), h("td", { class: "number" }, clock(each.first_seen)))))));
}

const HEADS = [["name", "process"], ["", "host"], ["", "kind"], ["", "what"], ["rate", "msg/s"], ["missed", "missed/s"], ["naks", "NAKs/s"], ["level", "state"], ["since", "known since"]];
const PLAIN = HEADS.map(([, text], at) => h("th", { class: [4, 5, 6, 8].includes(at) ? "number" : null, scope: "col" }, text));
const plain = (rows) => table(rows, PLAIN.map((each) => each.cloneNode(true)));

export function list(data, width, asked) {
  const found = data.list;
  if (!found) return [h("p", { class: "empty", "data-key": "wait" }, "One moment …")];
  const sort = asked.get("sort") || "level", here = { kind: found.kind, q: found.text };
  const heads = HEADS.map(([name, text], at) => h("th", { scope: "col", class: [4, 5, 6, 8].includes(at) ? "number" : null, "aria-sort": name && name === sort ? "descending" : null },
    name ? h("a", { href: address({ ...here, sort: name }) }, text) : text));
  const page = (number, text) => number >= 1 && number <= found.pages ? h("a", { href: address({ ...here, sort, page: number }) }, text) : "";
  return [
    h("section", { class: "card", "data-key": "list" },
      h("h2", {}, h("span", {}, many(found.count, found.kind ? kind(found.kind) : "object", found.kind === "process" ? "processes" : undefined), found.text ? ` with “${found.text}”` : "")),
      h("div", { class: "kinds" }, KINDS.map((each) => h("a", { href: address({ kind: each, q: found.text }), "aria-current": each === found.kind ? "true" : null }, each ? kind(each) : "all"))),
      found.rows.length ? table(found.rows, heads) : h("p", { class: "empty" }, "Nothing of that kind or name."),
      found.pages > 1 ? h("p", { class: "pages" }, page(found.page - 1, "previous"), `page ${found.page} of ${found.pages}`, page(found.page + 1, "next")) : ""),
  ];
}

const HAPPENED = { "": "all", loss: "losses", process: "processes", source: "sources", log: "log", interface: "interfaces" };

export function happened(data, width, asked) {
  if (!data.events) return [h("p", { class: "empty", "data-key": "wait" }, "One moment …")];
  const q = asked.get("q") || "", chosen = asked.get("kind") || "";
  const place = (kind) => "/events?" + new URLSearchParams(Object.entries({ kind, q }).filter(([, value]) => value));
  return [card("events", q ? `Events with “${q}”` : "What has happened, the newest first", "",
    h("div", { class: "kinds" }, Object.entries(HAPPENED).map(([each, text]) => h("a", { href: place(each), "aria-current": each === chosen ? "true" : null }, text))),
    events(data.events))];
}

function numbers(rows) {
  return h("div", { class: "numbers" }, rows.map(([name, value, rate]) => h("div", { "data-key": name },
    h("span", {}, name.replaceAll("_", " ")), h("span", { class: value ? "" : "zero" }, value === null ? "–" : value.toLocaleString("en")),
    h("span", { class: "rate" }, rate ? `${amount(rate)}/s` : ""))));
}

export function object(data) {
  const about = data.object, now = data.clock?.now;
  if (data.gone && !about) return [h("section", { class: "card", "data-key": "none" }, h("p", { class: "empty" }, "There is no such object, or none that was seen in the last hour."))];
  if (!about) return [h("p", { class: "empty", "data-key": "wait" }, "One moment …")];
  const path = about.path.flatMap((each) => [h("a", { href: `/o/${each.id}` }, each.name), " › "]);
  return [
    h("section", { class: "card head", "data-key": "head" },
      h("div", { class: "path" }, path, kind(about.kind)),
      h("h1", {}, about.name),
      h("p", {}, told(about.level), about.reasons?.length ? h("span", { class: `tone-${level(about.level).tone}` }, ": ", joined(about.reasons), about.since ? ", " + since(about.since, now) : "") : "",
        h("span", { class: "path" }, " · ", joined([about.first_seen && `known since ${clock(about.first_seen)}`, about.last_seen && now - about.last_seen > 3 && `last heard of ${clock(about.last_seen)}`])))),
    data.history !== undefined ? card("hour", "The last hour", "", charts(data.history)) : "",
    h("div", { class: "columns", "data-key": "columns" },
      h("div", { class: "stack" }, (data.related || []).map((each) => card(each.title, each.title, "", plain(each.rows))),
        data.numbers?.length ? card("numbers", "Its numbers", "", numbers(data.numbers)) : ""),
      h("div", { class: "stack" },
        card("facts", "What it is", "", h("dl", { class: "facts" }, about.facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]))),
        card("events", "What has happened to it", "", h("div", { class: "scroll" }, events(data.events || []))))),
  ];
}
