@_exported import CoreVideo
@_exported import UIKit
@_exported import Dispatch
public final class CMSampleBuffer {}
public func CMSampleBufferGetImageBuffer(_ buffer: CMSampleBuffer) -> CVImageBuffer? { nil }
public struct AVMediaType: Hashable, Sendable { public static let video = AVMediaType() }
open class AVCaptureDevice: NSObject, @unchecked Sendable {
    public struct DeviceType: Hashable, Sendable { public static let builtInWideAngleCamera = DeviceType() }
    public enum Position: Int, Sendable { case unspecified, back, front }
    open class func `default`(_ type: DeviceType, for media: AVMediaType?, position: Position) -> AVCaptureDevice? { nil }
    open class func requestAccess(for media: AVMediaType, completionHandler: @escaping @Sendable (Bool) -> Void) {}
}
open class AVCaptureInput: NSObject {}
open class AVCaptureDeviceInput: AVCaptureInput { public init(device: AVCaptureDevice) throws {} }
open class AVCaptureOutput: NSObject {}
open class AVCaptureConnection: NSObject { open var videoRotationAngle: CGFloat = 0 }
public protocol AVCaptureVideoDataOutputSampleBufferDelegate: NSObjectProtocol {
    func captureOutput(_ output: AVCaptureOutput, didOutput sampleBuffer: CMSampleBuffer, from connection: AVCaptureConnection)
    func captureOutput(_ output: AVCaptureOutput, didDrop sampleBuffer: CMSampleBuffer, from connection: AVCaptureConnection)
}
extension AVCaptureVideoDataOutputSampleBufferDelegate {
    public func captureOutput(_ output: AVCaptureOutput, didOutput sampleBuffer: CMSampleBuffer, from connection: AVCaptureConnection) {}
    public func captureOutput(_ output: AVCaptureOutput, didDrop sampleBuffer: CMSampleBuffer, from connection: AVCaptureConnection) {}
}
open class AVCaptureVideoDataOutput: AVCaptureOutput {
    open var alwaysDiscardsLateVideoFrames = true
    open var videoSettings: [String: Any]! = [:]
    open func setSampleBufferDelegate(_ delegate: (any AVCaptureVideoDataOutputSampleBufferDelegate)?, queue: DispatchQueue?) {}
}
open class AVCaptureSession: NSObject, @unchecked Sendable {
    public struct Preset: Hashable, Sendable { public static let vga640x480 = Preset() }
    open var sessionPreset = Preset()
    open func beginConfiguration() {} ; open func commitConfiguration() {} ; open func startRunning() {} ; open func stopRunning() {}
    open func canAddInput(_ input: AVCaptureInput) -> Bool { true } ; open func addInput(_ input: AVCaptureInput) {}
    open func canAddOutput(_ output: AVCaptureOutput) -> Bool { true } ; open func addOutput(_ output: AVCaptureOutput) {}
}
public enum AVLayerVideoGravity: Sendable { case resizeAspectFill }
open class AVCaptureVideoPreviewLayer: CALayer { open var session: AVCaptureSession? ; open var videoGravity = AVLayerVideoGravity.resizeAspectFill }
