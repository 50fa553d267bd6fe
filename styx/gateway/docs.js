"use strict";
// Sends a form as one request. Arguments are put together as JSON text, never as numbers: JavaScript would round
// integers above 2^53.

const isJson = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

// What is typed for a text parameter is the text; anything else is JSON, or a string if it is not JSON.
const argumentText = (input) =>
  input.dataset.kind !== "text" && isJson(input.value) ? input.value : JSON.stringify(input.value);

const inner = (text, open, what) => {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  if (!isJson(trimmed) || trimmed[0] !== open) throw new Error(what);
  return trimmed.slice(1, -1).trim();
};

const bodyOf = (form) => {
  const inputs = [...form.querySelectorAll("input[data-part]")];
  const isArray = form.dataset.body === "array";
  const parts = [];
  for (const input of inputs) {
    const { part } = input.dataset;
    if (part === "variadic") parts.push(inner(input.value, "[", `${input.name} is a JSON array`));
    else if (part === "rest" && !isArray) parts.push(inner(input.value, "{", `${input.name} is a JSON object`));
    else if (part === "argument" && !("optional" in input.dataset && input.value === ""))
      parts.push((isArray ? "" : JSON.stringify(input.name) + ":") + argumentText(input));
  }
  const text = parts.filter((part) => part !== "").join(",");
  return isArray ? `[${text}]` : `{${text}}`;
};

const pretty = (text) =>
  isJson(text) && !/\d{16}/.test(text) ? JSON.stringify(JSON.parse(text), null, 2) : text;

const run = async (form) => {
  const { operator, function: name } = form.dataset;
  const key = form.querySelector("input[data-part=key]").value;
  if (key === "." || key === "..") throw new Error("a browser cannot send this key: it takes it for a directory");
  const reads = name === undefined;
  const path = (reads ? ["v1", operator, key] : ["v1", operator, key, name]).map(encodeURIComponent).join("/");
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: bodyOf(form) };
  const response = await fetch(path, reads ? { method: "GET" } : request);
  return { ok: response.ok, text: `${response.status} ${response.statusText}\n${pretty(await response.text())}` };
};

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button");
  const output = form.querySelector("output");
  button.disabled = true;
  try {
    const { ok, text } = await run(form);
    output.className = ok ? "committed" : "refused";
    output.textContent = text;
  } catch (error) {
    output.className = "refused";
    output.textContent = String(error);
  } finally {
    button.disabled = false;
  }
});
