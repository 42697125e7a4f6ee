// Arrays as a model takes and gives them: codes, where it has codes, and the numbers that they stand for.
import { roundEven } from "./pixels.js";

export const TYPES = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array, int8: Int8Array };

// What an input takes for an array: codes for floats where it has codes.
export function coded(array, { dtype, scale, zero_point: zero }) {
  const Type = TYPES[dtype];
  if (array instanceof Type) return array;
  if (!scale || !(array instanceof Float32Array)) return Type.from(array);
  const count = 2 ** (8 * Type.BYTES_PER_ELEMENT), least = dtype[0] === "u" ? 0 : -count / 2, most = least + count - 1;
  return Type.from(array, (value) => Math.min(most, Math.max(least, roundEven(Math.fround(value / Math.fround(scale))) + zero)));
}

// What an output's array stands for; the array itself where it has no codes.
export function numbers(array, { scale, zero_point: zero }) {
  return scale ? Float32Array.from(array, (code) => scale * (code - zero)) : array;
}
