// A view as a table in a notebook. Python sends `painted` when the view changed; cells that changed are shown so.

function element(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text === null ? "NULL" : text;
  made.className = kind;
  return made;
}

function line(tag, texts, kinds) {
  const made = document.createElement("tr");
  made.append(...texts.map((text, place) => element(tag, text, kinds[place])));
  return made;
}

function kinds(row, marks, numeric) {
  return row.map((text, place) =>
    [numeric[place] && "number", text === null && "null", marks[place]].filter(Boolean).join(" "));
}

function table({ name, columns, numeric, rows, marks, caption, problem }) {
  const made = document.createElement("table");
  made.append(element("caption", problem || `${name}: ${caption}`, problem ? "problem" : ""));
  const head = document.createElement("thead");
  head.append(line("th", columns, kinds(columns, columns.map(() => ""), numeric)));
  const body = document.createElement("tbody");
  body.append(...rows.map((row, number) => line("td", row, kinds(row, marks[number], numeric))));
  made.append(head, body);
  return made;
}

function render({ model, el }) {
  el.classList.add("viewlet");
  const paint = () => el.replaceChildren(table(model.get("painted")));
  model.on("change:painted", paint);
  paint();
  return () => model.off("change:painted", paint);
}

export default { render };
