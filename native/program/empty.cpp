// A shared library needs a source file; its content comes from perflab_process (CMakeLists.txt).
