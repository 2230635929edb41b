// Resamples audio with a short windowed sinc: good enough for speech, and cheap.

const REACH = 8;

/** Converts samples from one rate to another, piece by piece and without seams. */
export class Resampler {
  #step;
  #cutoff;
  #reach;
  #kept;
  #at;

  constructor(from, to) {
    this.#step = from / to;
    // When downsampling, filter out what the lower rate cannot carry.
    this.#cutoff = Math.min(1, to / from);
    this.#reach = Math.ceil(REACH / this.#cutoff);
    this.#kept = new Float32Array(2 * this.#reach);
    this.#at = this.#reach;
  }

  /** The next piece. */
  take(samples) {
    if (this.#step === 1) return samples;
    const all = new Float32Array(this.#kept.length + samples.length);
    all.set(this.#kept);
    all.set(samples, this.#kept.length);
    const made = [];
    while (this.#at + this.#reach < all.length) {
      made.push(this.#sample(all, this.#at));
      this.#at += this.#step;
    }
    const drop = Math.max(0, Math.floor(this.#at) - this.#reach);
    this.#kept = all.slice(drop);
    this.#at -= drop;
    return Float32Array.from(made);
  }

  #sample(all, at) {
    const first = Math.max(0, Math.ceil(at - this.#reach));
    const last = Math.min(all.length - 1, Math.floor(at + this.#reach));
    let sum = 0;
    for (let place = first; place <= last; place += 1) {
      const away = place - at;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * away) / this.#reach);
      const x = Math.PI * away * this.#cutoff;
      sum += all[place] * window * (x === 0 ? 1 : Math.sin(x) / x);
    }
    return sum * this.#cutoff;
  }
}
