"""What holds for every schedule: texts are generated, and compared with other libraries or slow, plain code."""
