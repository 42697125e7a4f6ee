"""Tables of the TensorFlow Lite schema (version 3) as a reader meets them: the kind of every field, by slot.

Source: ``schema.fbs`` of the LiteRT project. schema.py has what the writer emits of it.
"""

from __future__ import annotations


def _fields(text: str) -> dict[int, str]:
    """``slot:kind`` words by slot; ``from-to:kind`` stands for several."""
    found: dict[int, str] = {}
    for word in text.split():
        slots, _, kind = word.partition(":")
        first, _, last = slots.partition("-")
        found.update(dict.fromkeys(range(int(first), int(last or first) + 1), kind))
    return found


TABLES: dict[str, dict[int, str]] = {
    name: _fields(fields)
    for name, fields in (
        (
            "Model",
            "0:u32 1:[OperatorCode] 2:[SubGraph] 3:string 4:[Buffer] 5:[i32] 6:[Metadata] 7:[SignatureDef] 8-9:table",
        ),
        ("OperatorCode", "0:i8 1:string 2:i32 3:i32"),
        ("SubGraph", "0:[Tensor] 1:[i32] 2:[i32] 3:[Operator] 4:string 5:i32"),
        ("Buffer", "0:[u8] 1:u64 2:u64"),
        ("Metadata", "0:string 1:u32"),
        ("SignatureDef", "0:[TensorMap] 1:[TensorMap] 2:string 4:u32"),
        ("TensorMap", "0:string 1:u32"),
        (
            "Tensor",
            "0:[i32] 1:i8 2:u32 3:string 4:Quantization 5:bool 6:Sparsity 7:[i32] 8:bool 9:[VariantSubType] 10:u32",
        ),
        ("VariantSubType", "0:[i32] 1:i8 2:bool"),
        ("Quantization", "0:[f32] 1:[f32] 2:[f32] 3:[i64] 4:u8 5:table 6:i32"),
        ("Sparsity", "0:[i32] 1:[i32] 2:[DimensionMetadata]"),
        ("DimensionMetadata", "0:i8 1:i32 2:u8 3:table 4:u8 5:table"),
        (
            "Operator",
            "0:u32 1:[i32] 2:[i32] 3:u8 4:table 5:[u8] 6:i8 7:[bool] 8:[i32] 9:u64 10:u64 11:u8 12:table 13:i32",
        ),
    )
}

OPTIONS: dict[int, dict[int, str]] = {
    number: _fields(fields)
    for number, fields in (
        (1, "0:i8 1-2:i32 3:i8 4-5:i32 6:i8"), (2, "0:i8 1-3:i32 4:i8 5-6:i32"), (3, "0:i32 1-2:[i32]"), (4, "0:i8"),
        (5, "0:i8 1-4:i32 5:i8"), (6, "0:i32 1:i8 2:bool"), (7, "0:i8 1:bool"), (8, "0-1:i8 2-3:bool 4:i8 5:[u8]"),
        (9, "0:f32"), (10, "0:i32 1:i8"), (11, "0:i8 1:bool"), (12, "0:i8"), (13, "0:i32 1-3:f32"),
        (14, "0:i8 1-2:f32 3:i8 4:bool"), (15, "2-3:bool"), (16, "0:u32"), (17, "0:[i32]"), (18, "0-1:i32 2:bool"),
        (19, "0:i32"), (20, "0:i8"), (21, "0:i8"), (23, "0-1:i32"), (27, "0:bool"), (28, "0:i8 1:bool"), (29, "0:i8"),
        (30, "0:[i32]"), (31, "0:bool 1:i8 2:bool"), (32, "0-4:i32 5:bool"), (35, "0:i32"), (37, "0-1:i8"),
        (40, "0:i8"), (49, "0:i8 1-2:i32 3-4:i8"), (50, "0:bool"), (55, "0:i8"), (57, "0:i8"),
        (58, "0-1:f32 2:i32 3:bool"), (59, "0-1:i32"), (61, "0:i32"), (64, "0-1:i32"),
        (69, "0:i8 1-2:f32 3-5:bool"), (70, "0:bool 1:i8 2-3:bool"), (71, "0:i8 1-2:f32 3-5:bool"), (74, "0-1:bool"),
        (75, "0:f32"), (77, "0:i8"), (79, "0:i32"), (80, "0:i8"), (87, "0-1:i32"), (92, "0-1:i32"), (93, "0-1:i32"),
        (94, "0:i32"), (101, "0-2:bool"), (102, "0-1:bool"), (103, "0:i32"), (106, "0:i8 1-3:i32 4:i8 5-7:i32"),
        (107, "0:i32 1-2:i8"), (111, "0-1:string"), (114, "0-1:i64"), (115, "0:[f32]"), (116, "0:bool"),
    )
}  # fmt: skip
"""Option tables by their number in the BuiltinOptions union; those that are not named have no fields that are read."""

OPTIONS_2: dict[int, dict[int, str]] = {
    number: _fields(fields)
    for number, fields in (
        (1, "0:i64"), (2, "0:[i64]"), (3, "0-2:[i64]"),
        (4, "0-3:[i64] 4:[bool] 5-6:i64 7:[i64] 8-9:i64 10:[i64] 11-12:i64 13:[i64] 14-15:i64 16:[u32]"),
        (5, "0:string 1:bool 2:string 3:i32 4:[i32] 5:[u8]"), (6, "0:[i64] 1:i32"),
        (7, "0:bool 1-3:[i64] 4:i64 5:bool 6:i32"), (8, "0-1:u32"), (9, "0:[i64]"), (10, "0-2:[i64]"), (11, "0:i64"),
        (12, "0-3:[i64] 4:[u32]"), (13, "0-4:[i64] 5:i32"), (14, "0:i64 1:bool 2:i32"), (15, "0-1:i32"),
        (16, "0-2:[i64] 3:i64 4:[i64] 5:bool"), (17, "0:[i64]"), (19, "0:i8"), (20, "0:i32"),
        (21, "0:string 1:i32 2:[u8] 3:i8 4:i32"), (23, "0:[i32]"),
    )
}  # fmt: skip
"""The same for the union BuiltinOptions2, of operators that came from StableHLO."""

POSITIVE: dict[int, tuple[int, ...]] = {
    1: (1, 2, 4, 5), 2: (1, 2, 5, 6), 5: (1, 2, 3, 4), 19: (0,), 49: (1, 2), 94: (0,), 106: (1, 2, 3, 5, 6, 7),
}  # fmt: skip
"""Fields of option tables that native code divides by or counts windows with: strides, dilations, windows, blocks.
Dilations are 1 where they are left out."""

DILATIONS: dict[int, tuple[int, ...]] = {1: (4, 5), 2: (5, 6), 106: (5, 6, 7)}

SUBGRAPHS: dict[int, tuple[int, ...]] = {92: (0, 1), 93: (0, 1), 103: (0,)}
"""Fields of option tables that are the numbers of subgraphs."""

SUBGRAPHS_2: dict[int, tuple[int, ...]] = {6: (1,), 7: (6,), 13: (5,), 14: (2,), 15: (0, 1), 21: (1,)}
CASE = 23
"""The table of BuiltinOptions2 whose first field lists subgraphs."""

EXPECTED: dict[int, int] = {
    1: 5, 3: 1, 4: 2, 5: 94, 17: 5, 12: 5, 26: 19, 67: 49, 118: 92, 119: 93, 129: 103, 132: 106, 141: 106,
}  # fmt: skip
"""By operator: the option table without which its kernel divides by 0 or looks into subgraphs that are not there."""

BITS = {
    0: 32, 1: 16, 2: 32, 3: 8, 4: 64, 6: 8, 7: 16, 8: 64, 9: 8, 10: 64, 11: 128, 12: 64, 15: 32, 16: 16, 17: 4, 18: 16,
    19: 2, 20: 4, 21: 8, 22: 8,
}  # fmt: skip
"""Bits of an element by TensorType number, of those that have a size."""

STRING, RESOURCE, VARIANT = 5, 13, 14
