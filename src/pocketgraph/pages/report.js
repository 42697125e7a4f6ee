"use strict";
// Tables that sort by a click on a title, groups of rows that open, names that break where one reads them, and light or dark.
for (const cell of document.querySelectorAll(".wide td:first-child, .wide td.words")) {
  for (const node of [...cell.childNodes, ...cell.querySelectorAll("code")]) {
    const parts = node.textContent.split(/(?<=[/_,(=:-])(?=[^/_,(=:-])/);
    if (node.childElementCount || parts.length < 2 || (node.nodeType !== Node.TEXT_NODE && node.nodeName !== "CODE")) continue;
    const broken = parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part]));
    if (node.nodeType === Node.TEXT_NODE) node.replaceWith(...broken); else node.replaceChildren(...broken);
  }
}
for (const wide of document.querySelectorAll(".wide")) {   // what runs on beyond the edge fades out there
  const tell = () => wide.classList.toggle("more", wide.scrollLeft + wide.clientWidth < wide.scrollWidth - 2);
  wide.addEventListener("scroll", tell, { passive: true });
  new ResizeObserver(tell).observe(wide);
}
for (const table of document.querySelectorAll(".wide table")) {
  const titles = [...table.querySelectorAll("thead th")];
  titles.forEach((title, column) => title.querySelector("button").addEventListener("click", () => {
    const isDown = title.getAttribute("aria-sort") !== "descending" && (title.dataset.first === "descending" || title.getAttribute("aria-sort") === "ascending");
    titles.forEach((other) => other.removeAttribute("aria-sort"));
    title.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    const key = (body) => body.rows[0].cells[column].dataset.sort ?? "";
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");   // what is not known stands last, either way
      const found = isNaN(x) || isNaN(y) ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
      return isDown ? -found : found;
    };
    table.append(...[...table.tBodies].sort(order));
  }));
  for (const body of table.querySelectorAll("tbody.group"))
    body.querySelector(".times").addEventListener("click", (event) => event.target.setAttribute("aria-expanded", String(body.classList.toggle("open"))));
}
if (matchMedia("(prefers-color-scheme: dark)").matches) document.body.classList.add("dark");
document.querySelector("button.theme").addEventListener("click", () => document.body.classList.toggle("dark"));
let wasDark = false;   // paper is white
window.addEventListener("beforeprint", () => { wasDark = document.body.classList.contains("dark"); document.body.classList.remove("dark"); });
window.addEventListener("afterprint", () => document.body.classList.toggle("dark", wasDark));
