// Keeps the end of the log in sight while it grows, as long as the reader is there. Who scrolls up is left in peace, to the end of the answer
// and after it; a button leads back.

const NEAR = 40; // pixels from the end that count as the end

export class Follower {
  constructor(log, jump) {
    Object.assign(this, { log, jump });
    this.follows = true;
    this.last = 0; // where the log was scrolled to
    log.addEventListener('scroll', () => this.scrolled(), { passive: true });
    // The wheel is first heard of here: smooth scrolling begins with pixels that the next growth would take back.
    log.addEventListener('wheel', event => { if (event.deltaY < 0) this.leave(); }, { passive: true });
    jump.addEventListener('click', () => this.toEnd());
    new ResizeObserver(() => this.grown()).observe(log);
  }

  get distance() { return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight; }

  // The log grows and shrinks between two events of this kind too: only a move upwards that leaves the end is the reader's.
  scrolled() {
    const top = this.log.scrollTop;
    if (top < this.last && this.distance > 1) this.follows = false;
    else if (top > this.last && this.distance < NEAR) this.follows = true;
    this.last = top;
    this.show();
  }

  leave() {
    if (this.log.scrollTop > 0) this.follows = false;
    this.show();
  }

  // To be called when the log has grown.
  grown() {
    if (this.follows) {
      this.log.scrollTop = this.log.scrollHeight;
      this.last = this.log.scrollTop;
    }
    this.show();
  }

  toEnd() {
    this.follows = true;
    this.grown();
  }

  show() { this.jump.hidden = this.follows || this.distance < NEAR; }
}
