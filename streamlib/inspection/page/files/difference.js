// Two responses, aligned by their events.

const OPS = {
  same: "=",
  ids: "≈ ids",
  changed: "≠ changed",
  only_a: "− only A",
  only_b: "+ only B",
};

class Difference {
  constructor(difference, choose) {
    this.difference = difference;
    this.rows = new Rows(
      at("differences"),
      [["rows"], ["A", "number time"], ["B", "number time"], ["event"], ["what differs", "last"]],
      index => this.cells(this.list[index]),
      index => {
        this.rows.moveTo(index);
        choose(this.list[index]);
      },
      () => {},
    );
    at("difference").hidden = false;
    const isTimed = difference.rows.some(row => (row.a_at ?? row.b_at) != null);
    at("differences").classList.toggle("untimed", !isTimed);
    at("only-different").onchange = () => this.arrange();
    const { first } = difference;
    // A redacted difference has no names.
    const a = difference.a ? `${difference.a} (A)` : "A";
    const b = difference.b ? `${difference.b} (B)` : "B";
    at("first-difference").replaceChildren(
      quoted(
        first
          ? `The first difference of ${a} and ${b}: ${first.text}`
          : "The events are the same.",
      ),
    );
    this.arrange();
    if (first) this.rows.moveTo(first.row);
  }

  arrange() {
    const all = this.difference.rows;
    this.list = at("only-different").checked ? all.filter(row => row.op !== "same") : all;
    this.rows.size = this.list.length;
    this.rows.measure();
  }

  cells({ op, a_at: a, b_at: b, type, label, a_text: left, b_text: right }) {
    const texts = make("div", { class: "texts" });
    if (op !== "same")
      texts.append(
        ...[
          ["A", left],
          ["B", right],
        ]
          .filter(([, text]) => text)
          .map(([name, text]) => make("div", {}, `${name} `, quoted(oneLine(text, 160)))),
      );
    return [
      [make("span", { class: op === "same" || op === "ids" ? "soft" : "error" }, OPS[op]), ""],
      [clockTime(a ?? null), "number time"],
      [clockTime(b ?? null), "number time"],
      [quoted(label || type), ""],
      [texts, "last"],
    ];
  }
}
