#!/usr/bin/env python3
"""Counts the adapters that Vulkan reaches; exits 1 where there is none."""

import ctypes
import sys


class InstanceCreateInfo(ctypes.Structure):  # VkInstanceCreateInfo
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                ("application", ctypes.c_void_p), ("layer_count", ctypes.c_uint32), ("layers", ctypes.c_void_p),
                ("extension_count", ctypes.c_uint32), ("extensions", ctypes.c_void_p)]


def count_adapters():
    try:
        vulkan = ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return 0
    instance = ctypes.c_void_p()
    if vulkan.vkCreateInstance(ctypes.byref(InstanceCreateInfo(type=1)), None, ctypes.byref(instance)) != 0:
        return 0
    count = ctypes.c_uint32()
    if vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None) != 0:
        return 0
    return count.value


if __name__ == "__main__":
    adapters = count_adapters()
    print(f"Vulkan reaches {adapters} adapter(s)")
    sys.exit(0 if adapters else 1)
