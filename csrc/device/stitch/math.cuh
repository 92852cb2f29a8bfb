// Every elementwise function, by the names of ops.def.
#pragma once

#include "device/stitch/math_basic.cuh"
#include "device/stitch/math_exp.cuh"
#include "device/stitch/math_int.cuh"
#include "device/stitch/math_special.cuh"
#include "device/stitch/math_trig.cuh"
