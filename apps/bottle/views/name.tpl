<!DOCTYPE html><html><head><title>Hello</title></head><body><p>Hello, {{name}}!</p></body></html>\\
