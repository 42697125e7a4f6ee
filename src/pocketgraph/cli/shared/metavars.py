"""What --help calls the value of an option that takes free text: a file, a folder, names…"""

from __future__ import annotations

import click

_BY_KIND = {
    "FILE": (
        "calibration certificate data decisions device_file dot_output ground_truth image in_graph input "
        "input_graph input_meta_graph input_saver key_file labels new_key out out_graph output output_graph "
        "output_labels picture priors step_stats_name trace_file vectors wake_labels wav"
    ),
    "FILES": "certificates graphs",
    "MODEL": "graph model model_dir",
    "DIR": "against bottleneck_dir input_saved_model_dir log_dir root_dir save summaries_dir wav_dir",
    "PATH": "image_dir input_checkpoint output_prefix report_path",
    "PYTHON": "compare_python",
    "NAME": (
        "app benchmark_name bottleneck_tensor decoder engine filename_tensor_name final_tensor_name "
        "input_data_name input_layer input_name input_rate_name key_env name output_layer output_name package preset "
        "rater restore_op_name signature target tensor wake_word"
    ),
    "NAMES": (
        "classes compare devices initializer_nodes input_names input_node_names inputs keep "
        "output_names output_node_names outputs placeholder_to_const_names signatures tag_set tags saved_model_tags "
        "target_layer targets transforms variable_names_blacklist variable_names_whitelist without"
    ),
    "NUMBERS": "input_layer_values placeholder_type_enum",
    "OP:KERNEL,…": "default_ops",
    "SECONDS": "inference_delay inter_benchmark_delay max_time run_delay",
    "SHAPES": "input_layer_shape",
    "TYPES": "input_layer_type",
    "HOST": "host",
    "HOST:PORT": "address",
    "TEXT": "author description license_text model_version",
}
METAVARS = {name: kind for kind, names in _BY_KIND.items() for name in names.split()}
"""By a parameter's name; an option whose value is more than that has a ``metavar`` where it is declared."""


def names_value(option: click.Option) -> None:
    """Gives an option of free text the word that --help shows for its value."""
    if option.metavar is None and isinstance(option.type, click.types.StringParamType) and not option.is_flag:
        option.metavar = METAVARS.get(option.name or "")
