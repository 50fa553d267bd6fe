"use strict";
// Sends the query that is typed, and shows its rows. What comes is put into the page as text, never as markup.

const form = document.querySelector("form");
const output = document.querySelector("output");
const results = document.querySelector("table");

const cell = (name, value) => {
  const element = document.createElement(name);
  element.textContent = value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return element;
};

const line = (name, values) => {
  const row = document.createElement("tr");
  row.append(...values.map((value) => cell(name, value)));
  return row;
};

const show = (found, age) => {
  const names = found.columns.map((column) => column.name);
  results.replaceChildren(line("th", names), ...found.rows.map((row) => line("td", names.map((name) => row[name]))));
  output.className = "committed";
  output.textContent = `${found.rows.length} rows, epoch ${found.epoch}, ${age} s old`;
};

const run = async () => {
  const request = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ sql: form.elements.sql.value, format: "json", rows: Number(form.dataset.rows) }),
  };
  const response = await fetch("v1/sql", request);
  const text = await response.text();
  if (!response.ok) throw new Error(JSON.parse(text).error.message);
  show(JSON.parse(text), response.headers.get("styx-age"));
};

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  output.className = output.textContent = "";
  try {
    await run();
  } catch (error) {
    results.replaceChildren();
    output.className = "refused";
    output.textContent = error.message;
  } finally {
    button.disabled = false;
  }
});
