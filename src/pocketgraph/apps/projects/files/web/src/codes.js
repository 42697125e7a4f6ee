// Arrays as a model takes and gives them: codes, where it has codes, and the numbers that they stand for.
import { roundEven } from "./pixels.js";

export const TYPES = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };

// What an input takes for an array: codes for floats where it has codes.
export function coded(array, { dtype, scale, zero_point: zero }) {
  const Type = TYPES[dtype];
  if (array instanceof Type) return array;
  if (!scale || !(array instanceof Float32Array)) return Type.from(array);
  return Type.from(array, (value) => Math.min(255, Math.max(0, roundEven(Math.fround(value / Math.fround(scale))) + zero)));
}

// What an output's array stands for; the array itself where it has no codes.
export function numbers(array, { scale, zero_point: zero }) {
  return scale ? Float32Array.from(array, (code) => scale * (code - zero)) : array;
}
