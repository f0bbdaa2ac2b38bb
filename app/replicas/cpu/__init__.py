"""The embedded OCR server: an OpenAI chat-completions API over an OCR engine. One process, one page at a time.

server      HTTP: routes, streams, refusals
chat        what a chat-completions request asks for, and the shapes of its answers
images      image bytes out of a data: URL, checked
reader      the one slot: pages in line, recognition, layout
engine      the `Engine` protocol          paddle   faster-paddle with PP-OCRv6 (lookalikes: signs it takes for letters)
recognition image to upright lines         picture, skew, show_through, bullets
layout      lines to Markdown              columns, rows, tables, body, paragraphs, markers
"""
