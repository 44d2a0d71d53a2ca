"""What `import` and `export` need to carry definitions from and to files and other schedulers."""
