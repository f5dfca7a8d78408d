#pragma once

// Everything that a training engine includes.
#include <forebay/base/bytes.hpp>
#include <forebay/base/dtype.hpp>
#include <forebay/base/error.hpp>
#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/plan/order.hpp>
