// SPDX-License-Identifier: GPL-2.0-only
// Sorts a table by the column whose heading is pressed. Cells have their value in data-value.

function valueOf(row, column) {
  const cell = row.cells[column];
  const value = cell ? cell.dataset.value ?? cell.textContent.trim() : "";
  const number = Number(value);
  return value === "" || Number.isNaN(number) ? value : number;
}

function compare(one, other) {
  if (typeof one === typeof other) {
    return typeof one === "number" ? one - other : one.localeCompare(other);
  }
  return typeof one === "number" ? -1 : 1; // cells without a number come last
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, other) =>
        compare(valueOf(one, column), valueOf(other, column)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
