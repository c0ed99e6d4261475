// Searches the runs and cells for words; the address keeps them.
/** @type {any} */
const words = document.querySelector(".search input");
const search = () => {
  words.value = choice().get("words") ?? "";
  const wanted = words.value.toLowerCase().split(/\s+/);
  const hide = (one, ...parts) => {
    const text = parts.map((part) => part.textContent).join(" ").toLowerCase();
    for (const part of parts) part.classList.toggle("off", !wanted.every((word) => text.includes(word)));
  };
  for (const row of rows) hide(row, row, row.more);
  for (const cell of all(".cell")) hide(cell, cell);
};
words.oninput = () => {
  choose((chosen) => words.value.trim() ? chosen.set("words", words.value) : chosen.delete("words"));
  search();
};
addEventListener("hashchange", search);
search();
