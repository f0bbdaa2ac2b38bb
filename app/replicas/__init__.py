"""Starting replicas and keeping them up.

command     what starts one replica           cpu_fleet   commands for the embedded OCR servers
child       one process                       replica     one process after the other
backoff     waits between them                supervisor  all replicas of a fleet
up          `pagefleet replicas up`           cpu/        the embedded OCR server itself
"""
