// Live pages. One tab of a browser holds the stream of events, because a browser opens few connections to one server; the others hear
// of it over a channel. Nothing here makes HTML of text: rows are clones of a template.

import { page as tree } from "./forest.js";

const { base, watch, proof } = document.body.dataset;
const $ = (id) => document.getElementById("w:" + id);
const root = document.querySelector("[role=tree]");
let version = Number(document.body.dataset.version);
let source = null, release = null, busy = null;
let channel = null;
let over = false; // the program has ended
const retry = 3000; // in ms: when a stream that was refused is opened again
let timer = 0; // of that
const silent = "kubectl warren ui does not answer: what is shown may be old. Start it anew if it has ended.";

const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** showAges gives each time on the page as how long ago it was; on hover, as it is. */
function showAges() {
  for (const time of document.querySelectorAll("time")) {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? units.at(-1);
    time.title = time.dateTime;
    time.textContent = ago.format(Math.trunc(seconds / size), unit);
  }
}
showAges();
setInterval(showAges, 30_000);

/** fill gives a row the text of a line. */
function fill(li, line) {
  const row = li.firstElementChild;
  row.id = line.id;
  row.className = line.class;
  row.setAttribute("aria-level", line.level);
  li.classList.toggle("troubled", line.troubled);
  if (!li.className) li.removeAttribute("class");
  const link = row.firstElementChild, name = document.createElement("b");
  name.textContent = line.name;
  if (line.class === "missing" || line.class === "unmade") link.replaceWith(name);
  else {
    const to = link.localName === "a" ? link : document.createElement("a");
    to.tabIndex = -1;
    to.setAttribute("href", "namespaces/" + encodeURIComponent(line.name));
    to.replaceChildren(name);
    if (to !== link) link.replaceWith(to);
  }
  const spans = [["", line.words], ["below", line.below], ["hidden", line.hidden], ...line.problems.map((p) => ["problem", p]), ["people", line.people]];
  while (row.childNodes.length > 1) row.lastChild.remove();
  for (const [kind, text] of spans) {
    if (!text) continue;
    const span = document.createElement("span");
    if (kind) span.className = kind;
    span.textContent = text;
    row.append(" ", span);
  }
}

/** groupOf returns the list below a row, and makes one where there is none. */
function groupOf(li) {
  let group = li.querySelector(":scope > [role=group]");
  if (!group) {
    group = document.createElement("ul");
    group.setAttribute("role", "group");
    li.append(group);
  }
  return group;
}

/** place puts a line where it belongs, and returns the list that holds it. */
function place(line) {
  const old = document.getElementById(line.id);
  const li = old && root.contains(old) ? old.parentElement : $("row").content.firstElementChild.cloneNode(true);
  fill(li, line);
  const row = li.firstElementChild;
  if (line.hasChildren && !row.hasAttribute("aria-expanded")) row.setAttribute("aria-expanded", root.dataset.open);
  const list = line.parent ? groupOf(document.getElementById(line.parent).parentElement) : root;
  const before = line.after ? document.getElementById(line.after).parentElement : null;
  const next = before ? before.nextSibling : list.firstChild;
  const from = li.parentElement;
  if (from !== list || next !== li) {
    const focused = li.contains(document.activeElement) ? document.activeElement : null;
    list.insertBefore(li, next); // where it stands before itself nothing moves
    focused?.focus({ preventScroll: true });
  }
  return [list, from];
}

/** refocus gives the focus back to a row, or, where that now stands in a folded tree, to the next row above that is shown. */
function refocus(row) {
  while (row?.role === "treeitem") {
    row.focus({ preventScroll: true });
    if (document.activeElement === row) return;
    row = row.closest("ul").previousElementSibling;
  }
}

/** applyLines brings the tree to a newer version. */
function applyLines(message) {
  const lists = new Set();
  const focusedRow = document.activeElement?.closest?.("[role=treeitem]");
  for (const line of message.lines) for (const list of place(line)) list && lists.add(list);
  for (const id of message.removed) {
    const row = document.getElementById(id);
    if (!row || !root.contains(row)) continue;
    const li = row.parentElement, up = li.parentElement;
    const neighbour = (li.nextElementSibling ?? li.previousElementSibling ?? up.parentElement)?.querySelector("[role=treeitem]");
    const hadFocus = li.contains(document.activeElement);
    lists.add(up);
    li.remove();
    if (hadFocus) neighbour?.focus();
  }
  // Only now: rows that stood below may have moved to rows that are drawn later.
  for (const line of message.lines) {
    if (line.hasChildren) continue;
    const row = document.getElementById(line.id);
    row.removeAttribute("aria-expanded");
    row.parentElement.querySelector(":scope > [role=group]")?.remove();
  }
  for (const list of lists) {
    let position = 0;
    for (const li of list.children) {
      li.firstElementChild.setAttribute("aria-posinset", ++position);
      li.firstElementChild.setAttribute("aria-setsize", list.children.length);
    }
  }
  if (focusedRow?.isConnected && document.activeElement === document.body) refocus(focusedRow);
  tree?.changed();
  $("nothing").hidden = !!root.firstElementChild;
}

/** texts replaces the items of a list by sentences. */
function texts(list, sentences) {
  if (!list || list.children.length === sentences.length && sentences.every((s, i) => list.children[i].textContent === s)) return;
  list.replaceChildren(...sentences.map((sentence) => {
    const li = document.createElement("li");
    li.textContent = sentence;
    return li;
  }));
}

function warn(text) {
  const trouble = $("trouble");
  if (trouble.textContent !== text) trouble.textContent = text;
  trouble.hidden = !text;
}

/** hear takes a message, or fetches what lies between where it begins later than this page. */
function hear(message) {
  warn(message.trouble);
  if (message.version <= version) return;
  if (message.from > version) { catchUp(message.version); return; }
  version = message.version;
  if (root) {
    applyLines(message);
    $("counts").textContent = message.counts;
    texts($("unread"), message.unread);
  } else if (watch && (message.lines.some((line) => line.id === watch || line.parent === watch) || message.removed.includes(watch))) {
    $("news").hidden = false;
  }
}

/** isOwn reports whether a message is of the program that made this page. If that has ended, another may listen on its port. */
function isOwn(message) {
  if (message.proof === proof) return true;
  end("Another program answers in place of kubectl warren ui. Close this page.");
  return false;
}

/** end leaves the page as it is. */
function end(text) {
  over = true;
  source?.close();
  ended(text);
  setTimeout(leave, retry); // a later run on this port needs the lock; the other tabs know by then
}

/** leave closes the stream, and gives the lock back. */
function leave() {
  clearTimeout(timer);
  source?.close();
  release?.();
  source = release = null;
}

/** catchUp fetches what is new. It returns whether the program has answered; undefined if nobody has. A fetch that is under way may have
 * been answered before the version that is wanted: another follows it. */
async function catchUp(wanted = 0) {
  if (over) return false;
  const earlier = busy;
  const mine = busy ??= fetch(base + "changes?since=" + version, { cache: "no-store" })
    .then((answer) => answer.ok ? answer.json() : null).catch(() => undefined);
  const message = await mine;
  if (busy === mine) busy = null;
  if (message === undefined) return undefined;
  if (!message || !isOwn(message)) return false;
  hear(message);
  if (earlier && version < wanted) catchUp();
  return true;
}

/** lead opens the stream, and keeps the lock until the page is left. */
function lead() {
  if (over) return null;
  return new Promise((done) => {
    release = done;
    listen();
  });
}

/** listenLater opens the stream that was refused again. Where another program answers, it gives the lock to that program's pages. */
function listenLater() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const answered = await catchUp();
    if (over || !release) return;
    if (answered) {
      ended("Too many pages of kubectl warren ui are open, so this one changes every few seconds only: close some.");
      listen();
      return;
    }
    ended(silent);
    if (answered === undefined) listenLater();
    else leave();
  }, retry);
}

/** listen opens the stream. */
function listen() {
  source?.close();
  source = new EventSource(base + "events?since=" + version);
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (!isOwn(message)) return;
    channel?.postMessage({ message });
    hear(message);
  };
  source.onerror = () => {
    if (over) return;
    if (source?.readyState === EventSource.CLOSED) listenLater(); // it was refused: the browser does not try again
    else ended(silent);
  };
  source.addEventListener("end", (event) => {
    const message = JSON.parse(event.data);
    if (isOwn(message)) end(message.cause + ". What this page shows changes no more: run kubectl warren ui again, and open the address that it prints.");
  });
}

function ended(text) {
  channel?.postMessage({ ended: text, over });
  warn(text);
}

function join() {
  channel = new BroadcastChannel("warren" + base);
  channel.onmessage = ({ data }) => {
    if (data.message) hear(data.message);
    else if ("ended" in data) {
      over ||= data.over;
      warn(data.ended);
    }
  };
  // Every page of the origin can list the names of locks, also one that another program served on this port: none holds the secret path.
  navigator.locks.request("warren", lead).catch(() => {});
  catchUp();
}

// A page that is left may be kept for the way back, and would keep the lock and the stream.
addEventListener("pagehide", () => { leave(); channel?.close(); channel = null; });
addEventListener("pageshow", (event) => { if (event.persisted && !over) join(); });

// On a narrow page, cells stand below each other: each names its column.
for (const table of document.querySelectorAll("table")) {
  for (const cell of table.tBodies[0].querySelectorAll("td:not([colspan])")) cell.dataset.head = table.tHead.rows[0].cells[cell.cellIndex].textContent.split(":")[0];
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".copy");
  if (!button) return;
  const code = button.previousElementSibling;
  getSelection().selectAllChildren(code);
  navigator.clipboard?.writeText(code.textContent).then(() => { button.textContent = "Copied"; }, () => {});
});

join();
