# colcon sources this with COLCON_CURRENT_PREFIX set; a package of build type cmake does not get it by itself.
_colcon_prepend_unique_value AMENT_PREFIX_PATH "$COLCON_CURRENT_PREFIX"
