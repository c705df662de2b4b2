// The tree of a page that shows the forest: keys, folding, search, only problems, focus on one tree. All rows are in the markup; this
// module changes attributes and classes, and makes elements for the matches of a search alone.

const $ = (id) => document.getElementById("w:" + id);
const maxMatches = 200;

/** Tree is the tree of the page. A live page calls changed() after it has added, changed or removed rows. */
export class Tree {
  constructor(root) {
    this.root = root;
    this.current = null; // the row that the Tab key reaches
    this.index = null; // [row, lower-case name], made at the first search
    root.addEventListener("keydown", (e) => this.#key(e));
    root.addEventListener("click", (e) => this.#click(e));
    root.addEventListener("focusin", (e) => this.#mark(e.target.closest("[role=treeitem]")));
    this.changed();
  }

  /** changed forgets what was known of the rows. The row that has the focus keeps it. */
  changed() {
    this.index = null;
    if (!this.current?.isConnected) {
      this.current = null;
      this.#mark(this.root.querySelector("[role=treeitem]"));
    }
  }

  rows() { return this.root.querySelectorAll("[role=treeitem]"); }

  /** fold folds or unfolds every row. */
  fold(open) {
    for (const row of this.root.querySelectorAll("[aria-expanded]")) row.setAttribute("aria-expanded", open);
    if (!open && this.current) this.#mark(this.top(this.current));
  }

  /** reveal opens the way to a row and gives it the focus. */
  reveal(row) {
    if (this.root.hidden) showDrawing(false);
    if (!isShown(row)) { this.onlyProblems(false); this.focusOn(null); }
    for (let up = parentOf(row); up; up = parentOf(up)) up.setAttribute("aria-expanded", "true");
    this.go(row);
    row.scrollIntoView({ block: "nearest" });
  }

  go(row) {
    if (!row) return;
    this.#mark(row);
    row.focus();
  }

  /** top returns the first row of the tree that a row is in. */
  top(row) {
    for (let up = parentOf(row); up; up = parentOf(row)) row = up;
    return row;
  }

  onlyProblems(on) {
    this.root.classList.toggle("problems", on);
    press("problems", on);
    if (!on) return;
    for (const row of this.root.querySelectorAll(".troubled > [aria-expanded=false]")) {
      if (row.nextElementSibling?.querySelector(":scope > .troubled")) row.setAttribute("aria-expanded", "true");
    }
    this.#keepCurrentShown();
  }

  /** focusOn shows only the tree that a row is in; null shows all. */
  focusOn(row) {
    this.root.querySelector(":scope > .here")?.classList.remove("here");
    this.root.classList.toggle("focused", !!row);
    press("focus", !!row);
    if (row) this.top(row).parentElement.classList.add("here");
  }

  /** find returns the rows whose names hold text, those first whose names begin with it, and how many there are. */
  find(text) {
    this.index ??= Array.from(this.rows(), (row) => [row, row.firstElementChild.textContent.toLowerCase()]);
    const begin = [], within = [];
    for (const [row, name] of this.index) {
      const at = name.indexOf(text);
      if (at >= 0) (at === 0 ? begin : within).push(row);
    }
    return { rows: begin.concat(within).slice(0, maxMatches), all: begin.length + within.length };
  }

  #mark(row) {
    if (!row || row === this.current) return;
    if (this.current) this.current.tabIndex = -1;
    row.tabIndex = 0;
    this.current = row;
  }

  #keepCurrentShown() {
    if (this.current && isShown(this.current)) return;
    this.#mark(this.#first());
  }

  #first() { return firstShown(this.root.firstElementChild); }

  #last() {
    let row = lastShown(this.root.lastElementChild);
    while (row && isOpen(row)) {
      const below = lastShown(row.nextElementSibling.lastElementChild);
      if (!below) break;
      row = below;
    }
    return row;
  }

  #next(row) {
    const below = isOpen(row) && firstShown(row.nextElementSibling.firstElementChild);
    if (below) return below;
    for (; row; row = parentOf(row)) {
      const after = firstShown(row.parentElement.nextElementSibling);
      if (after) return after;
    }
    return null;
  }

  #previous(row) {
    let before = lastShown(row.parentElement.previousElementSibling);
    if (!before) return parentOf(row);
    while (isOpen(before)) {
      const below = lastShown(before.nextElementSibling.lastElementChild);
      if (!below) break;
      before = below;
    }
    return before;
  }

  /** #startingWith returns the next row whose name begins with a letter, from the top again after the last one. */
  #startingWith(letter, row) {
    const begins = (r) => r.firstElementChild.textContent.toLowerCase().startsWith(letter);
    for (let r = this.#next(row); r; r = this.#next(r)) if (begins(r)) return r;
    for (let r = this.#first(); r && r !== row; r = this.#next(r)) if (begins(r)) return r;
    return null;
  }

  #click(e) {
    const row = e.target.closest("[role=treeitem]");
    if (!row || e.target.closest("a")) return;
    this.go(row);
    toggle(row);
  }

  #key(e) {
    const row = e.target.closest("[role=treeitem]");
    if (!row || e.ctrlKey || e.metaKey || e.altKey) return;
    const open = row.getAttribute("aria-expanded");
    switch (e.key) {
      case "ArrowDown": this.go(this.#next(row)); break;
      case "ArrowUp": this.go(this.#previous(row)); break;
      case "Home": this.go(this.#first()); break;
      case "End": this.go(this.#last()); break;
      case "ArrowRight": open === "false" ? toggle(row) : isOpen(row) && this.go(firstShown(row.nextElementSibling.firstElementChild)); break;
      case "ArrowLeft": open === "true" ? toggle(row) : this.go(parentOf(row)); break;
      case "Enter": case " ": { const link = row.querySelector("a"); link ? link.click() : toggle(row); break; }
      case "*": for (const li of row.parentElement.parentElement.children) li.firstElementChild.ariaExpanded === "false" && toggle(li.firstElementChild); break;
      default:
        if (e.key.length !== 1 || e.key === "/") return;
        this.go(this.#startingWith(e.key.toLowerCase(), row));
    }
    e.preventDefault();
  }
}

const isOpen = (row) => row.getAttribute("aria-expanded") === "true";
const parentOf = (row) => { const above = row.parentElement.parentElement; return above.role === "group" ? above.previousElementSibling : null; };

function toggle(row) {
  if (row.hasAttribute("aria-expanded")) row.setAttribute("aria-expanded", !isOpen(row));
}

/** isShown reports whether the filters leave a row in the tree, folded or not. */
function isShown(row) {
  const tree = row.closest("[role=tree]");
  if (tree.classList.contains("problems") && !row.parentElement.classList.contains("troubled")) return false;
  return !tree.classList.contains("focused") || !!row.closest(".here");
}

function firstShown(li) {
  while (li && !isShown(li.firstElementChild)) li = li.nextElementSibling;
  return li?.firstElementChild ?? null;
}

function lastShown(li) {
  while (li && !isShown(li.firstElementChild)) li = li.previousElementSibling;
  return li?.firstElementChild ?? null;
}

const press = (id, on) => $(id)?.setAttribute("aria-pressed", on);
const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

function showDrawing(on) {
  const drawing = $("drawing");
  if (!drawing) return;
  drawing.hidden = $("zoom").hidden = !on;
  document.querySelector("[role=tree]").hidden = on;
  press("view", on);
}

/** pathOf returns the names from the top to a row. */
function pathOf(row) {
  const names = [];
  for (; row; row = parentOf(row)) names.unshift(row.firstElementChild.textContent);
  return names;
}

/** match makes an item of the list of matches: a link with the path, and the name with the text marked. */
function match(row, text) {
  const link = document.createElement("a");
  link.href = "#" + encodeURIComponent(row.id);
  const names = pathOf(row), name = names.pop(), at = name.toLowerCase().indexOf(text);
  const mark = document.createElement("mark");
  mark.textContent = name.slice(at, at + text.length);
  link.append(names.map((n) => n + " › ").join(""), name.slice(0, at), mark, name.slice(at + text.length));
  const item = document.createElement("li");
  item.append(link);
  return item;
}

function search(tree) {
  const text = $("search").value.trim().toLowerCase(), list = $("found");
  list.hidden = !text;
  tree.root.classList.toggle("searched", !!text);
  if (!text) {
    list.replaceChildren();
    $("status").textContent = "";
    return;
  }
  const found = tree.find(text);
  list.replaceChildren(...found.rows.map((row) => match(row, text)));
  $("status").textContent = found.all > found.rows.length ? `${found.rows.length} of ${found.all} matches` : found.all === 1 ? "1 match" : `${found.all} matches`;
}

/** openHash opens the way to the row that the address names. */
function openHash(tree) {
  let id = location.hash.slice(1);
  try { id = decodeURIComponent(id); } catch { /* as it stands */ }
  const row = id && document.getElementById(id);
  if (row?.role !== "treeitem") return;
  $("search").value = "";
  search(tree);
  tree.reveal(row);
}

/** escape takes back one thing at a time: the search, the focus on one tree, only problems. */
function escape(tree) {
  if ($("search").value) { $("search").value = ""; search(tree); }
  else if (tree.root.classList.contains("focused")) tree.focusOn(null);
  else if (tree.root.classList.contains("problems")) tree.onlyProblems(false);
  tree.go(tree.current);
}

/** start makes the page's tree work and shows its controls. It returns the Tree, or null where the page has none. */
export function start() {
  const root = document.querySelector("[role=tree]");
  if (!root) return null;
  const tree = new Tree(root);
  const on = (id, event, act) => $(id)?.addEventListener(event, act);
  on("search", "input", () => search(tree));
  on("search", "keydown", (e) => { if (e.key === "ArrowDown" || e.key === "Enter") { $("found").querySelector("a")?.focus(); e.preventDefault(); } });
  on("found", "keydown", (e) => {
    const to = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[e.key];
    if (!to) return;
    (e.target.closest("li")[to]?.firstElementChild ?? (e.key === "ArrowUp" && $("search")) ?? e.target).focus?.();
    e.preventDefault();
  });
  on("found", "click", (e) => { if (e.target.closest("a")?.hash === location.hash) openHash(tree); });
  on("fold", "click", () => tree.fold(false));
  on("unfold", "click", () => tree.fold(true));
  on("problems", "click", (e) => tree.onlyProblems(!isPressed(e.currentTarget)));
  on("focus", "click", (e) => tree.focusOn(isPressed(e.currentTarget) ? null : tree.current));
  on("people", "click", (e) => { const show = !isPressed(e.currentTarget); press("people", show); root.classList.toggle("nobody", !show); });
  on("view", "click", (e) => showDrawing(!isPressed(e.currentTarget)));
  const svg = $("drawing")?.querySelector("svg");
  $("zoom")?.querySelectorAll("button").forEach((button, i) => button.addEventListener("click", () => {
    const width = svg.getBoundingClientRect().width * (i ? 1.25 : 0.8);
    svg.style.width = width + "px";
    svg.style.height = "auto";
  }));
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") escape(tree);
    else if (e.key === "/" && e.target.localName !== "input") { $("search").focus(); e.preventDefault(); }
  });
  addEventListener("hashchange", () => openHash(tree));
  $("controls").hidden = false;
  openHash(tree);
  return tree;
}

export const page = start();
