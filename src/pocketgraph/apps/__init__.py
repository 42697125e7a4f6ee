"""What a person does with a finished model: label a picture."""
