// Quadratic curves, in CSS pixels.
export interface Point { x: number; y: number }
export interface Curve { from: Point; bend: Point; to: Point }

/** A point of the curve; `t` from 0 to 1. */
export function along(curve: Curve, t: number): Point {
  const s = 1 - t;
  const at = (a: number, b: number, c: number) => s * s * a + 2 * s * t * b + t * t * c;
  return { x: at(curve.from.x, curve.bend.x, curve.to.x), y: at(curve.from.y, curve.bend.y, curve.to.y) };
}
