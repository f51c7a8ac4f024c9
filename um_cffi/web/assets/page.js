// The page: which view the address asks for, its stream of changes, keys.
import { h, become } from "./dom.js";
import { amount } from "./words.js";
import { hung } from "./charts.js";
import { lighting } from "./map.js";
import { happened, list, object, overview } from "./views.js";

const main = document.getElementById("main"), live = document.getElementById("live"), search = document.getElementById("search");
const fleet = document.getElementById("title").textContent;
let stream = null, data = {}, view = null, before = null, timer = 0;

// The view of an address: what it is called, how it is asked for, how it is drawn.
function wanted(place) {
  const asked = new URLSearchParams(place.search), path = place.pathname;
  if (path.startsWith("/o/")) return { name: "object", ask: { view: "object", id: path.slice(3) }, draw: object, asked };
  if (path === "/list") {
    const ask = { view: "objects" };
    for (const name of ["kind", "q", "sort", "page"]) if (asked.get(name)) ask[name] = asked.get(name);
    return { name: "list", ask, draw: list, asked };
  }
  if (path === "/events") return { name: "events", ask: { view: "events", q: asked.get("q") || "", kind: asked.get("kind") || "" }, draw: happened, asked };
  return { name: "overview", ask: { view: "overview" }, draw: overview, asked };
}

function draw() {
  const width = main.clientWidth - 48;
  become(main, h("div", {}, view.draw(data, width, view.asked)));
  hung(main);
  const bad = data.verdict && data.verdict.parts.length ? `(${data.verdict.parts.length}) ` : "";
  document.title = (data.object ? `${data.object.name} – ` : bad) + fleet;
  foot();
}

function foot() {
  if (!data.clock) return;
  const { now, received, malformed, dropped } = data.clock;
  const rate = before && now > before.now ? (received - before.received) / (now - before.now) : null;
  if (!before || now - before.now >= 5) before = { now, received };
  become(document.getElementById("foot"), h("div", {},
    h("span", {}, `${(received ?? 0).toLocaleString("en")} records received${rate === null ? "" : `, ${amount(rate)}/s`}`),
    h("span", { class: malformed ? "tone-warn" : "" }, `${(malformed ?? 0).toLocaleString("en")} malformed`),
    h("span", { class: dropped ? "tone-warn" : "" }, `${(dropped ?? 0).toLocaleString("en")} dropped`)));
}

function state(name, text) {
  if (live.dataset.state !== name) live.dataset.state = name;
  if (live.textContent !== text) live.textContent = text;
}

function listen() {
  stream?.close();
  clearTimeout(timer);
  const mine = stream = new EventSource("/api/stream?" + new URLSearchParams(view.ask));
  mine.addEventListener("sections", (event) => {
    if (mine !== stream) return;
    state("on", "live");
    data = { ...data, ...JSON.parse(event.data), gone: false };
    draw();
  });
  mine.addEventListener("gone", () => { if (mine === stream) { state("on", "live"); data = { ...data, gone: true }; draw(); } });
  mine.onerror = () => {
    if (mine !== stream) return;
    state("off", "not connected");
    if (mine.readyState === EventSource.CLOSED) timer = setTimeout(refused, 3000); // refused: the browser gives up, this does not
  };
}

async function refused() {
  try {
    const answer = await fetch("/api/" + view.ask.view + "?" + new URLSearchParams(view.ask));
    if (answer.status === 404) { data = { gone: true }; state("on", "live"); draw(); return; }
    if (answer.status === 401) { state("off", "token needed"); return; }
  } catch { /* not there: again later */ }
  listen();
}

function go(push, place) {
  if (push) history.pushState(null, "", place);
  view = wanted(location);
  data = {};
  search.value = view.asked.get("q") || "";
  for (const each of document.querySelectorAll("nav a")) {
    const url = new URL(each.href);
    const current = url.pathname === location.pathname && (url.searchParams.get("kind") || "") === (view.asked.get("kind") || "");
    if (current) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  }
  draw();
  if (push) { scrollTo(0, 0); main.focus({ preventScroll: true }); }
  listen();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const place = new URL(link.href.baseVal ?? link.href, location.href);
  if (place.origin !== location.origin || place.hash) return;
  event.preventDefault();
  go(true, place.pathname + place.search);
});
addEventListener("popstate", () => go(false));

document.getElementById("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = search.value.trim();
  const kind = view.name === "list" || view.name === "events" ? view.asked.get("kind") || "" : "";
  go(true, (view.name === "events" ? "/events?" : "/list?") + new URLSearchParams(kind ? { kind, q: text } : { q: text }));
});

const THEMES = ["", "light", "dark"], root = document.documentElement;
function theme() {
  const next = THEMES[(THEMES.indexOf(root.dataset.theme || "") + 1) % 3];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  try { localStorage.setItem("um-theme", next); } catch { /* for this visit only */ }
  named();
  hung(main, true);
}
function named() { document.getElementById("theme").textContent = { "": "Auto", light: "Light", dark: "Dark" }[root.dataset.theme || ""]; }
document.getElementById("theme").addEventListener("click", theme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => hung(main, true));

const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());
document.getElementById("help-close").addEventListener("click", () => help.close());

const PLACES = { o: "/", p: "/list?kind=process", s: "/list?kind=source", r: "/list?kind=receiver", e: "/events" };
addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || help.open) return;
  if (event.target.matches("input")) {
    if (event.key === "Escape") main.focus();
    return;
  }
  if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
  else if (event.key === "?") help.showModal();
  else if (event.key === "t") theme();
  else if (PLACES[event.key]) go(true, PLACES[event.key]);
  else if (event.key === "j" || event.key === "k") {
    const links = [...main.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + (event.key === "j" ? 1 : at < 0 ? 1 : -1)))]?.focus();
  }
});

// Nobody looks: no stream is kept for that.
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (document.hidden) timer = setTimeout(() => { stream?.close(); stream = null; state("wait", "paused"); }, 60000);
  else if (!stream) listen();
});
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(draw); });

lighting(main);
named();
go(false);
