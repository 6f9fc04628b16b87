// Asks the server. A mistake is shown in the status line and thrown.

import { byId } from "./dom.js";

// An error stays until the part of the page that reported it works again.
let owner = "";

export function say(text, isError = false, from = "") {
  const status = byId("status");
  status.textContent = text;
  status.classList.toggle("error", isError);
  owner = from;
}

export function clearError(from) {
  if (owner === from && byId("status").classList.contains("error")) say("");
}

async function answer(response) {
  let value = null;
  try {
    value = await response.json();
  } catch {
    value = { error: `the server answered with ${response.status}` };
  }
  if (!response.ok) throw new Error(value.error ?? `the server answered with ${response.status}`);
  return value;
}

export async function get(name, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  return answer(await fetch(`/api/${name}?${query}`));
}

export async function post(name, value) {
  const headers = { "content-type": "application/json" };
  return answer(await fetch(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(value) }));
}
