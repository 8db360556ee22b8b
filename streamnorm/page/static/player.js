// The player: frames with times in, a playhead that moves out.
// Rule: the playhead is a number of frames. Time only decides when it moves; a long silence is
// shortened, as nobody wants to watch nothing.

const LONGEST_GAP = 0.9; // seconds
export const SPEEDS = [0.25, 0.5, 1, 2, 4];

export class Player {
  constructor(onMove, onState) {
    this.onMove = onMove;
    this.onState = onState;
    this.times = [];
    this.at = 0;
    this.speed = 1;
    this.playing = false;
    this.tick = this.tick.bind(this);
  }

  /** Other frames: their times, in seconds. The playhead is set by `seek`. */
  load(times) {
    let now = 0;
    let before = 0;
    this.times = times.map((time, index) => {
      now += index ? Math.min(LONGEST_GAP, Math.max(0, time - before)) : Math.min(LONGEST_GAP, time);
      before = time;
      return now;
    });
  }

  get length() { return this.times.length; }

  seek(frames) {
    this.at = Math.max(0, Math.min(frames, this.length));
    this.clock = this.times[this.at - 1] ?? 0;
    this.onMove(this.at);
  }

  step(by) { this.pause(); this.seek(this.at + by); }

  toggle() { if (this.playing) this.pause(); else this.play(); }

  play() {
    if (this.playing || !this.length) return;
    if (this.at >= this.length) this.seek(0);
    this.playing = true;
    this.last = undefined;
    this.onState(true);
    requestAnimationFrame(this.tick);
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.onState(false);
  }

  tick(now) {
    if (!this.playing) return;
    this.clock += this.last === undefined ? 0 : ((now - this.last) / 1000) * this.speed;
    this.last = now;
    let at = this.at;
    while (at < this.length && this.times[at] <= this.clock) at += 1;
    if (at !== this.at) { this.at = at; this.onMove(at); }
    if (this.at >= this.length) return this.pause();
    requestAnimationFrame(this.tick);
  }

  faster(by) {
    const index = SPEEDS.indexOf(this.speed) + by;
    if (SPEEDS[index] !== undefined) this.speed = SPEEDS[index];
    return this.speed;
  }
}
