"""What the words of our pages mean, in plain sentences."""

GLOSSARY = {
    "same best class": "In how many samples the highest score belongs to the same class as with the model that it is "
    "held against.",
    "KL divergence": "How far two sets of probabilities are apart, in nats: 0 is equal, below 0.01 nobody sees it, "
    "0.03 is visible, 0.1 is bad.",
    "signal to noise": "How much stronger the results are than the error in them, in decibels (dB): 10 dB more is a "
    "tenth of the error's power. 20 dB is an error of a tenth of the values, 40 dB of a hundredth.",
    "cosine": "How much the results point the same way: 1 is the same way, 0 is unrelated.",
    "code": "The whole number that stands for a value in an eight-bit model: value = scale * (code - zero point).",
    "scale": "The distance between two neighbouring values that have codes.",
    "operand": "What a layer multiplies its weights with: the result of the layer before it.",
    "cut off": "Values outside of the range that has codes become its nearest end.",
    "at the scores": "Decibels left at the model's outputs when only this tensor is rounded to codes. The lower, the "
    "more this layer hurts.",
    "here": "Decibels of this tensor in the eight-bit model, with all errors made before it.",
    "ms": "Milliseconds, thousandths of a second, measured on this machine.",
    "median": "Half of the runs were quicker, half slower.",
    "percentile": "p95 is the time that 95 of 100 runs stayed below.",
    "FLOPs": "Additions and multiplications of numbers in one run.",
    "LiteRT": "The engine that runs compiled parts of a model, formerly TensorFlow Lite.",
    "reference engine": "Computes node by node, in NumPy; slower, and takes everything that LiteRT does not.",
    "top-1": "The share of samples whose right class has the highest score; top-5: one of the five highest.",
    "F1 of tags": "The harmonic mean of precision and recall, of all tags together, where several may be true of a "
    "sample; tags right: the share of tags, given or not, that are; all right: of samples, each of whose tags is.",
    "95 % confident": "The true value lies between these two in 95 of 100 cases; fewer samples leave more room.",
    "mean error": "The mean distance of the results from those of the first model, or from what the data tell.",
    "rewired": "The node is there before and after, and reads something else.",
    "near miss": "A place that a rule left alone although it looks as if it were for it.",
    "node": "One operation of the model's graph.",
}
"""Words of the field by which pages say what they measured."""
