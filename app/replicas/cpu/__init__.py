"""The embedded OCR server: an OpenAI chat-completions API over an OCR engine. One process, one page at a time.

server      HTTP: routes, streams, refusals
chat        what a chat-completions request asks for, and the shapes of its answers
images      image bytes out of a data: URL, checked
reader      the one slot: pages in line, engine, layout
engine      the `Engine` protocol          paddle   faster-paddle with PP-OCRv6 tiny
layout      lines to Markdown              rows, paragraphs
"""
