"""Options of tools that came before, and what the commands that do their work take in their place."""

_CONVERTER = {
    **dict.fromkeys(("graph_def_file", "saved_model_dir", "keras_model_file"), "MODEL"),
    "output_file": "--output",
    "input_arrays": "--inputs",
    "output_arrays": "--outputs",
    "input_shapes": "--input_shape",
    "mean_values": "--input_mean",
    "std_dev_values": "--input_std",
    **dict.fromkeys(("inference_type", "post_training_quantize"), "--mode"),
    **dict.fromkeys(("inference_input_type", "inference_output_type"), "--io"),
}
"""Of toco and tflite_convert."""

FORMER_OPTIONS = {
    "export": {**_CONVERTER, "allow_custom_ops": "--custom_ops"},
    "quantize": _CONVERTER,
    "benchmark_model": {  # of TensorFlow Lite's program of this name, and of the first ones for phones
        **dict.fromkeys(("use_gpu", "use_nnapi", "use_xnnpack", "use_hexagon", "use_coreml", "use_caffe2"), "--engine"),
        "input_layer_value_files": "--inputs",
        "max_secs": "--max_time",
        "enable_op_profiling": "--show_type",
    },
    "label_image": {  # of TensorFlow Lite's
        **dict.fromkeys(("model_file", "tflite_model"), "--graph"),
        "label_file": "--labels",
    },
}
"""By command."""
