"""From text to graph: the only place that knows that a language model exists."""
