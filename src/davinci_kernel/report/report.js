"use strict";
const filters = [...document.querySelectorAll("[data-filter]")];
const rollouts = [...document.querySelectorAll(".rollout")];

function applyFilters() {
  for (const rollout of rollouts) {
    rollout.hidden = !filters.every(
      (filter) => !filter.value || rollout.dataset[filter.dataset.filter].split(" ").includes(filter.value),
    );
  }
  for (const task of document.querySelectorAll(".task")) {
    task.hidden = !task.querySelector(".rollout:not([hidden])");
  }
  document.getElementById("shown").textContent = `${rollouts.filter((r) => !r.hidden).length} shown`;
}

function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target || !target.matches(".rollout")) return;
  if (target.hidden) {
    for (const filter of filters) filter.value = "";
    applyFilters();
  }
  target.open = true;
  target.scrollIntoView();
}

for (const filter of filters) filter.addEventListener("change", applyFilters);
window.addEventListener("hashchange", openTarget);
if (filters.length) applyFilters();
openTarget();
