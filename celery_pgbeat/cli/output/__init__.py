"""What commands print: values, tables, times, warnings. A helper of one command is here too, if it only prints."""
