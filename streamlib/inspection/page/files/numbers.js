// Figures as people read them.

function count(value, noun) {
  const number = value.toLocaleString("en");
  if (noun === undefined) return number;
  return value === 1 ? `${number} ${noun}` : `${number} ${noun}s`;
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return "0 ms";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

function clockTime(value) {
  return value === null ? "" : `+${value.toFixed(3)}`;
}

// The index of the last element that is not above the value; -1 where all are.
function lastAtMost(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
