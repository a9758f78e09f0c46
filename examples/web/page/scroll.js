// Keeps the end of the log in sight while it grows, as long as the reader is there. Who scrolls up is left in peace, to the end of the answer
// and after it; a button leads back.

const NEAR = 40; // pixels from the end that count as the end

export class Follower {
  constructor(log, jump) {
    Object.assign(this, { log, jump });
    this.follows = true;
    this.last = 0; // where the log was scrolled to
    log.addEventListener('scroll', () => this.scrolled(), { passive: true });
    jump.addEventListener('click', () => this.toEnd());
    new ResizeObserver(() => this.grown()).observe(log);
  }

  get distance() { return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight; }

  // The log grows between two events of this kind too: only a move upwards is the reader's.
  scrolled() {
    const top = this.log.scrollTop;
    if (this.distance < NEAR) this.follows = true;
    else if (top < this.last) this.follows = false;
    this.last = top;
    this.show();
  }

  // To be called when the log has grown.
  grown() {
    if (this.follows) this.log.scrollTop = this.log.scrollHeight;
    this.show();
  }

  toEnd() {
    this.follows = true;
    this.grown();
  }

  show() { this.jump.hidden = this.follows || this.distance < NEAR; }
}
