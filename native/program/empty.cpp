// A shared library has a source; what is in it comes from perflab_process (CMakeLists.txt).
